"""Numbers about a batch of dialogues."""

import math
from pathlib import Path

import pytest
from rich.console import Console
from transformers import TrainerState

from duologue.trainers.metrics import dialogue_metrics, flat_groups
from duologue.trainers.progress import MetricsLog, ProgressLine
from duologue.types import Episode, Message, StopReason


def episode(reward: float | None, replies: int = 1, mask: tuple[int, ...] = (1, 0)) -> Episode:
    turn = (Message(role="user", content="say it now"), Message(role="assistant", content="red"))
    reason = StopReason.TURN_LIMIT if reward is not None else StopReason.SIMULATOR_ERROR
    zeros = (0.0,) * len(mask)
    return Episode(
        "e", "t", 0, turn * replies, reason, reward, completion_ids=mask, completion_mask=mask, logprobs=zeros
    )


@pytest.mark.parametrize(
    ("rewards", "flat"),
    [
        ([1.0, 1.0, 0.0, 1.0], [True, False]),
        ([0.1 + 0.2, 0.3, 0.3, 0.3], [False, True]),
        ([None, 1.0, None, None], [True, True]),
        ([], []),
    ],
)
def test_flat_groups_have_one_reward(rewards: list[float | None], flat: list[bool]) -> None:
    assert flat_groups(rewards, 2) == flat


def test_means_over_the_batch() -> None:
    episodes = [episode(1.0, 2, (1, 1, 0, 1)), episode(0.0), episode(None), episode(None)]
    numbers = dialogue_metrics(episodes, 2)
    assert numbers["dialogue/turns"] == 1.25
    assert numbers["dialogue/policy_tokens"] == 1.5
    assert numbers["dialogue/total_tokens"] == 2.5
    assert numbers["dialogue/user_words_per_turn"] == 3.0
    assert numbers["dialogue/unscored"] == 0.5
    assert numbers["dialogue/flat_groups"] == 0.5
    assert numbers["dialogue/distinct_replies"] == 0.2
    assert (numbers["stop/turn_limit"], numbers["stop/simulator_error"]) == (0.5, 0.5)


def test_dialogues_without_any_word_do_not_divide_by_zero() -> None:
    silent = Episode("e", "t", 0, (), StopReason.SIMULATOR_ERROR, None)
    numbers = dialogue_metrics([silent, silent], 2)
    assert numbers["dialogue/user_words_per_turn"] == numbers["dialogue/distinct_replies"] == 0.0


def test_progress_line_says_none_where_nothing_was_scored() -> None:
    console = Console(record=True, width=200)
    line = ProgressLine(9, console)
    state = TrainerState(global_step=3, is_world_process_zero=True)
    line.on_log(None, state, None, {"loss": 0.5, "reward": None, "dialogue/turns": 2.0, "other": 1.0})
    line.on_log(None, state, None, {"train_runtime": 9.0})
    assert console.export_text() == "step    3/9  reward none  turns  2.0  loss   0.5000\n"


def test_numbers_that_json_lacks_become_null(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    state = TrainerState(global_step=3, is_world_process_zero=True)
    log.on_log(None, state, None, {"loss": math.nan, "grad_norm": math.inf, "reward": None, "entropy": 1.5})
    log.on_log(None, state, None, {"train_runtime": 9.0})
    assert log.path.read_text() == '{"step": 3, "loss": null, "grad_norm": null, "reward": null, "entropy": 1.5}\n'
