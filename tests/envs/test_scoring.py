import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from duologue.envs.scoring import Unscored, score_all
from duologue.rewards.base import Score
from duologue.types import Dialogue, Task


@pytest.fixture
def dialogues() -> list[Dialogue]:
    return [Dialogue(Task(f"t{i}", "?", "!"), i).then("user", "?").then("assistant", str(i)) for i in range(3)]


def reward_of(values: dict[int, Any]) -> Any:
    """Return a reward that gives each seed its value, raising those that are exceptions."""

    def reward(dialogues: Sequence[Dialogue]) -> list[Any]:
        for dialogue in dialogues:
            if isinstance(values[dialogue.seed], Exception):
                raise values[dialogue.seed]
        return [values[dialogue.seed] for dialogue in dialogues]

    return reward


def test_scores_come_in_order(dialogues: list[Dialogue]) -> None:
    assert score_all(reward_of({0: 0.0, 1: 1, 2: None}), dialogues) == [Score(0.0), Score(1), Score(None)]


@pytest.mark.parametrize("junk", [RuntimeError("no"), float("nan"), float("inf"), "high", [1.0], 1j])
def test_one_bad_dialogue_leaves_the_others_scored(dialogues: list[Dialogue], junk: Any) -> None:
    first, bad, last = score_all(reward_of({0: 0.25, 1: junk, 2: 0.75}), dialogues)
    assert (first, last) == (Score(0.25), Score(0.75))
    assert isinstance(bad, Unscored)
    assert bad.error.endswith("Return one finite number or None per dialogue.")


@pytest.mark.parametrize("answer", [None, 1.0, [], [1.0] * 7])
def test_a_reward_that_returns_the_wrong_shape_scores_nothing(dialogues: list[Dialogue], answer: Any) -> None:
    assert all(isinstance(outcome, Unscored) for outcome in score_all(lambda d: answer, dialogues))


def test_a_failure_that_passes_is_tried_again(dialogues: list[Dialogue]) -> None:
    calls: list[int] = []

    def flaky(dialogues: Sequence[Dialogue]) -> list[float | None]:
        calls.append(len(dialogues))
        if len(calls) == 1:
            raise TimeoutError("busy")
        return [1.0] * len(dialogues)

    assert score_all(flaky, dialogues) == [Score(1.0)] * 3
    assert calls == [3, 1, 1, 1]


def test_no_dialogues_no_call() -> None:
    assert score_all(reward_of({}), []) == []


def test_junk_parts_are_refused(dialogues: list[Dialogue]) -> None:
    parts: Any = {"length": "long"}
    reward: Any = SimpleNamespace(score=lambda d: [Score(1.0, parts) for _ in d])
    broken = type("Parted", (), {"score": reward.score, "__call__": lambda self, d: []})()
    broken.score = reward.score
    assert all(isinstance(outcome, Unscored) for outcome in score_all(broken, dialogues))


def test_a_reward_that_hangs_leaves_its_dialogues_unscored_and_bounds_the_wait(dialogues: list[Dialogue]) -> None:
    release = threading.Event()
    calls: list[int] = []

    def hangs(batch: Sequence[Dialogue]) -> list[float | None]:
        calls.append(len(batch))
        release.wait(30)
        return [1.0] * len(batch)

    outcomes = score_all(hangs, dialogues, timeout=0.05)
    release.set()
    assert all(isinstance(o, Unscored) and "hangs" in o.error and "Raise the time-out" in o.error for o in outcomes)
    assert calls == [len(dialogues), 1, 1, 1][: 1 + len(dialogues)]
