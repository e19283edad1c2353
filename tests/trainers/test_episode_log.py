"""JSON lines that survive a kill."""

import json
from pathlib import Path

import pytest

from duologue.errors import DuologueError
from duologue.trainers.episode_log import EpisodeLog, JsonLines
from duologue.types import Episode, Message, Span, StopReason


def test_a_half_written_last_line_is_dropped(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "deep" / "log.jsonl")
    assert list(log) == []
    log.append([{"a": 1}, {"a": 2}])
    with log.path.open("a") as file:
        file.write('{"a": 3')
    assert list(log) == [{"a": 1}, {"a": 2}]
    log.keep(lambda row: True)
    log.append([{"a": 4}])
    assert [json.loads(line) for line in log.path.read_text().splitlines()] == [{"a": 1}, {"a": 2}, {"a": 4}]


def test_keep_drops_what_will_be_written_again(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "log.jsonl")
    log.keep(lambda row: True)
    assert not log.path.exists()
    log.append([{"step": i, "text": "ünï\u2028x"} for i in range(4)])
    log.keep(lambda row: row["step"] < 2)
    assert list(log) == [{"step": i, "text": "ünï\u2028x"} for i in range(2)]


def test_keep_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "log.jsonl")
    log.append([{"step": 1}, {"other": 2}])
    before = log.path.read_bytes()
    with pytest.raises(DuologueError, match=r"Line 2 of .*it has no 'step'\)\. Correct or remove the line\.$"):
        log.keep(lambda row: row["step"] > 0)
    assert log.path.read_bytes() == before


@pytest.mark.parametrize("line", ["{oops", "", "[1]", '{"step": '])
def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, line: str) -> None:
    log = EpisodeLog(tmp_path / "log.jsonl")
    log.path.write_text(f'{{"step": 0}}\n{line}\n{{"step": 1}}\n{{"step": 2')
    before = log.path.read_bytes()
    for read in (list, lambda log: log.keep(lambda row: row["step"] < 9)):
        with pytest.raises(DuologueError, match=r"Line 2 of '.*log\.jsonl' is no row .*remove the line\.$"):
            read(log)
    assert log.path.read_bytes() == before
    log.keep(lambda row: row["step"] < 0)  # what is cut away anyway may be damaged
    assert log.path.read_bytes() == b""
    log.append([{"step": 0}])
    with pytest.raises(DuologueError, match=r"Line 1 of .* is no episode"):
        log.read()


def test_episodes_come_back_as_they_were(tmp_path: Path) -> None:
    episode = Episode(
        env_id="Env-v0",
        task_id="t",
        seed=2**62 + 1,
        messages=(Message(role="user", content="hi \U0001f680"), Message(role="assistant", content="")),
        stop_reason=StopReason.SIMULATOR_ERROR,
        reward=None,
        reward_parts={"bleu": None, "length": 0.5},
        user_notes={"leak": 2.0},
        user_acts=(("open",), ("ask", "reveal")),
        prompt_ids=(1, 2),
        completion_ids=(3, 4),
        completion_mask=(1, 0),
        logprobs=(-0.1234567890123, 0.0),
        spans=(Span(0, 1, 7),),
        error="It broke. Fix it.",
        seconds={"agent": 0.5},
    )
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    log.write([episode], 3)
    log.write([episode], 4)
    assert log.read() == [episode, episode]
    assert [row["step"] for row in log] == [3, 4]
