"""Tasks, a user and a reward of one's own, plugged into an environment by argument.

python examples/own_parts.py
"""

from __future__ import annotations

from collections.abc import Sequence

from duologue import Act, Dialogue, StopReason, Task, UserTurn
from duologue.envs import DialogueVectorEnv
from duologue.envs.tasks import TaskList
from duologue.simulators import check_simulator
from duologue.trainers import FunctionAgent, Rollout, Start

TASKS = TaskList([Task(f"city-{c}", f"Guess my city. It starts with {c[0]}.", c) for c in ("Lima", "Oslo", "Rome")])


class GuessingGameUser:
    """Gives one more letter after each wrong guess, and leaves when the city is named or after six guesses."""

    signature = "guessing-game"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the user's next turn for each dialogue; everything it needs is in the dialogue."""
        return [self._turn(dialogue) for dialogue in dialogues]

    def _turn(self, dialogue: Dialogue) -> UserTurn:
        guesses, city = dialogue.said_by("assistant"), dialogue.task.reference
        if not guesses:
            return UserTurn(dialogue.task.instruction, acts=(Act.OPEN,))
        if city in guesses[-1]:
            return UserTurn("Yes!", stop=StopReason.USER_SATISFIED, acts=(Act.ACCEPT, Act.STOP))
        if len(guesses) >= 6:
            return UserTurn("Never mind.", stop=StopReason.USER_GAVE_UP, acts=(Act.STOP,))
        return UserTurn(f"No. It starts with {city[: len(guesses) + 1]}.", acts=(Act.REJECT, Act.REVEAL))


def named_early(dialogues: Sequence[Dialogue]) -> list[float | None]:
    """Return 1 for a city named at the first guess, 1/2 at the second, and so on; 0 if never."""
    turns = [dialogue.said_by("assistant") for dialogue in dialogues]
    found = [dialogue.task.reference in (texts or ("",))[-1] for dialogue, texts in zip(dialogues, turns, strict=True)]
    return [hit / len(texts) if hit else 0.0 for hit, texts in zip(found, turns, strict=True)]


def guess(messages: Sequence[object]) -> str:
    """Try one city after the other."""
    return ("Rome", "Oslo", "Lima")[len(messages) // 2 % 3]


def main() -> None:
    """Check the user, then play four dialogues side by side."""
    user = GuessingGameUser()
    check_simulator(user, list(TASKS))
    env = DialogueVectorEnv(4, TASKS, user, named_early, max_turns=5)
    for episode in Rollout(env, FunctionAgent(guess)).play([Start(seed) for seed in range(4)]):
        print(episode.task_id, episode.stop_reason.value, episode.reward)


if __name__ == "__main__":
    main()
