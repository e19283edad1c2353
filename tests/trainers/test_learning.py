"""An environment so easy that not to learn it is a bug, and a control in which there is nothing to learn."""

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from duologue.trainers.interactive import InteractiveTrainer
from duologue.types import Episode

MakeTrainer = Callable[..., InteractiveTrainer]
STEPS, PHASE = 24, 6


def permutation_test(before: Sequence[float], after: Sequence[float]) -> float:
    """P(a random relabelling raises the mean as much), exactly: Fisher's test of no change against a rise."""
    values, n = np.array([*before, *after]), len(after)
    means = [values[list(chosen)].mean() for chosen in combinations(range(len(values)), n)]
    return float(np.mean(np.array(means) >= np.mean(after) - 1e-12))


def run(trainer: MakeTrainer, reward: Any, output: Path, seed: int = 0) -> tuple[list[float], list[float]]:
    """Train, and return each step's mean reward and how often the assistant said the word that the user wanted."""
    size: dict[str, Any] = {"groups_per_step": 4, "group_size": 8, "micro_batch_size": 16}
    made = trainer(env={"reward": reward, "max_turns": 2}, steps=STEPS, seed=seed, output=str(output), **size)
    made.train()
    episodes = made.episodes.read()
    return by_step([e.reward or 0.0 for e in episodes]), by_step([said_the_word(e) for e in episodes])


def said_the_word(episode: Episode) -> float:
    said = " ".join(m["content"] for m in episode.messages if m["role"] == "assistant")
    return float(episode.task_id in said.split())


def rise(values: Sequence[float]) -> float:
    return float(np.mean(values[-PHASE:]) - np.mean(values[:PHASE]))


def by_step(values: Sequence[float]) -> list[float]:
    return [float(x) for x in np.reshape(values, (STEPS, -1)).mean(axis=1)]


def test_permutation_test() -> None:
    assert permutation_test([0, 0, 0], [1, 1, 1]) == pytest.approx(1 / 20)
    assert permutation_test([1, 1, 1], [0, 0, 0]) == 1.0
    assert permutation_test([0, 1, 0], [1, 0, 0]) > 0.5


@pytest.mark.slow
def test_what_can_be_learned_is_learned(trainer: MakeTrainer, world: SimpleNamespace, tmp_path: Path) -> None:
    rewards, successes = run(trainer, world.heard, tmp_path)
    assert rewards == successes
    assert permutation_test(rewards[:PHASE], rewards[-PHASE:]) < 0.01
    assert rise(rewards) > 0.3


@pytest.mark.slow
def test_rewards_that_ignore_the_replies_teach_nothing(
    trainer: MakeTrainer, world: SimpleNamespace, tmp_path: Path
) -> None:
    rises = []
    for seed in range(3):
        rewards, successes = run(trainer, world.Lottery(), tmp_path / str(seed), seed)
        assert permutation_test(rewards[:PHASE], rewards[-PHASE:]) > 0.05
        rises.append(rise(successes))
    assert np.mean(rises) < 0.2  # noise moves the policy, but not towards the word
