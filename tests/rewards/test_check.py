from collections.abc import Callable, Sequence
from typing import Any

import pytest

from duologue.errors import DuologueError
from duologue.rewards import BleuReward, ExactMatch, Reward, WeightedSum, check_reward
from duologue.types import Dialogue, Task

_Column = list[float | None]


@pytest.mark.parametrize(
    "reward", [ExactMatch(), BleuReward(), WeightedSum({"a": (ExactMatch(), 1.0), "b": (BleuReward(), 0.1)}, gate="a")]
)
def test_shipped_rewards_keep_the_contract(reward: Reward) -> None:
    check_reward(reward)


def test_own_dialogues_are_used() -> None:
    seen: list[str] = []

    def spy(dialogues: Sequence[Dialogue]) -> _Column:
        seen.extend(d.task.task_id for d in dialogues)
        return [None] * len(dialogues)

    check_reward(spy, [Dialogue(Task("mine", "q", "5"), seed=0).then("user", "q").then("assistant", "Answer: 5")])
    assert set(seen) == {"mine"}


def _each(score: Callable[[Dialogue], Any]) -> Callable[[Sequence[Dialogue]], Any]:
    return lambda dialogues: [score(d) for d in dialogues]


def _normalised(dialogues: Sequence[Dialogue]) -> _Column:
    lengths = [float(len("".join(d.said_by("assistant")))) for d in dialogues]
    return [length / (max(lengths) or 1.0) for length in lengths]


def _by_position(dialogues: Sequence[Dialogue]) -> _Column:
    return [float(i) for i in range(len(dialogues))]


def _forgetful(dialogues: Sequence[Dialogue]) -> _Column:
    return [1.0] * max(len(dialogues) - 1, 0)


def _meddling(dialogues: Sequence[Dialogue]) -> _Column:
    for dialogue in dialogues:
        for message in dialogue.messages:
            message["content"] = message["content"].lower()
    return [0.0] * len(dialogues)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (_forgetful, "exactly one score per dialogue"),
        (lambda dialogues: tuple(0.0 for _ in dialogues), "Return a list"),
        (_each(lambda d: "1.0"), "finite floats"),
        (_each(lambda d: float("nan")), "finite floats"),
        (_each(lambda d: 1 / 0), "raised ZeroDivisionError"),
        (_each(lambda d: float(len(d.said_by("assistant")[-1]))), "without messages"),
        (_by_position, "order of the batch"),
        (_normalised, "company in the batch"),
        (_each(lambda d: float(any(d.task.reference in m["content"] for m in d.messages))), "user's words"),
        (_meddling, "changed the dialogues"),
    ],
)
def test_faults_are_named(reward: Reward, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        check_reward(reward)
