"""How much of a scripted user's speed is left inside the environment, with an agent that costs nothing."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym

from benchmarks.timing import Comparison, compare
from duologue.envs import ENV_IDS, DialogueVectorEnv
from duologue.simulators import Simulator, make_simulator
from duologue.types import Dialogue, UserTurn

SLOTS = (1, 64)
STEPS = 512
"""Replies of the agent per repetition, over all slots."""
REPLY = "Could you tell me more?"
"""All that the null agent says: a question, so that users do what they mostly do."""


class Recorder:
    """Passes calls on to a user and keeps them."""

    def __init__(self, user: Simulator) -> None:
        self.user = user
        self.calls: list[list[Dialogue]] = []

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Answer as the user does."""
        self.calls.append(list(dialogues))
        return self.user.respond(dialogues)


def measure(repetitions: int) -> list[Comparison]:
    """Compare, for each shipped environment and number of slots."""
    return [compare_env(env_id, slots, repetitions) for env_id in ENV_IDS for slots in SLOTS]


def compare_env(env_id: str, slots: int, repetitions: int) -> Comparison:
    """Compare stepping through dialogues with asking the user for the very same turns in the very same batches.

    Both speeds are in steps: the baseline's is what the environment would reach if only its user took time.
    """
    user = make_simulator("scripted", env_id)
    recorder = Recorder(user)
    play(_env(env_id, slots, recorder))
    env = _env(env_id, slots, user)

    def bare() -> float:
        for call in recorder.calls:
            user.respond(call)
        return STEPS

    name = f"{env_id}, {slots} slot{'s' if slots > 1 else ''}"
    return compare(name, "steps", "the user alone, same calls", (lambda: play(env), bare), repetitions)


def play(env: DialogueVectorEnv) -> float:
    """Step all slots with the null agent; one whose dialogue has ended starts the next at once. Return the steps."""
    env.reset(seed=0)
    for _ in range(STEPS // env.num_envs):
        _, _, terminated, truncated, _ = env.step([REPLY] * env.num_envs)
        over = terminated | truncated
        if over.any():
            env.reset(options={"reset_mask": over})
    return STEPS


def _env(env_id: str, slots: int, user: Simulator) -> DialogueVectorEnv:
    env = gym.make_vec(env_id, num_envs=slots, vectorization_mode="vector_entry_point", simulator=user)
    assert isinstance(env, DialogueVectorEnv)
    return env
