"""The rules against annotated turns of real people; the labels stand here, the texts do not."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from duologue.analysis.acts import label_acts
from duologue.analysis.acts.agreement import Agreement, Labelled, act_agreement
from duologue.simulators.logs import LoggedDialogue, import_logs
from duologue.trainers import stats
from duologue.types import Act

LABELS = Path(__file__).resolve().parents[1] / "data" / "user_acts.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
F1_ON_TEST = {
    "ask": 0.96,
    "reveal": 0.79,
    "confused": 0.86,
    "accept": 0.67,
    "reject": 0.7,
    "correct": 0.81,
    "all": 0.84,
}
"""Recorded in docs/fidelity.md. ``thank`` and ``stop`` are too rare here to pin."""
Logs = Mapping[tuple[str, str], LoggedDialogue]


@pytest.fixture(scope="module")
def logs() -> Logs:
    """The labelled dialogues, by file and id."""
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}")
    files = {(row["file"], row["source"]) for row in ROWS}
    return {(file, log.dialogue_id): log for file, source in files for log in import_logs(source, folder / file)}


def labelled(logs: Logs, part: str) -> list[Labelled]:
    turns = []
    for row in ROWS:
        if row["part"] == part:
            log = logs[row["file"], row["dialogue_id"]]
            found = label_acts(log.task, log.messages[: row["turn"]], log.messages[row["turn"]]["content"])
            turns.append(Labelled(row["dialogue_id"], frozenset(map(Act, row["acts"])), found))
    return turns


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 1000)


def measured(logs: Logs, part: str) -> Mapping[str, Agreement]:
    return act_agreement(labelled(logs, part))


def test_labels_hold_no_text_and_no_turn_twice() -> None:
    assert len(ROWS) == len({(row["file"], row["dialogue_id"], row["turn"]) for row in ROWS}) == 497
    assert all(
        set(row) <= {"id", "source", "file", "dialogue_id", "turn", "sha256", "part", "acts", "second"} for row in ROWS
    )
    assert all(("open" in row["acts"]) == (row["turn"] == 0) for row in ROWS)
    assert {part: sum(row["part"] == part for row in ROWS) for part in ("development", "reserve", "test")} == {
        "development": 132,
        "reserve": 232,
        "test": 133,
    }


def test_two_annotators_agree() -> None:
    twice = [row for row in ROWS if "second" in row]
    turns = [
        Labelled(row["dialogue_id"], frozenset(map(Act, row["acts"])), frozenset(map(Act, row["second"])))
        for row in twice
    ]
    found = act_agreement(turns)
    assert len(turns) == 100
    assert not [row for row in twice if row["part"] == "test"]
    assert round(found["all"].kappa.value, 2) == 0.97
    assert min(found[act.value].kappa.value for act in Act) == pytest.approx(0.90, abs=0.01)


def test_the_texts_are_those_that_were_labelled(logs: Logs) -> None:
    for row in ROWS:
        message = logs[row["file"], row["dialogue_id"]].messages[row["turn"]]
        assert message["role"] == "user"
        assert sha256(message["content"].encode()).hexdigest()[:8] == row["sha256"], f"turn {row['id']} has changed"


def test_agreement_on_turns_that_the_rules_never_saw(logs: Logs) -> None:
    found = measured(logs, "test")
    assert {name: round(found[name].f1.value, 2) for name in F1_ON_TEST} == F1_ON_TEST
    assert found["all"].f1.low > 0.75
    assert found["all"].kappa.low > 0.7


def test_agreement_on_turns_that_the_rules_were_written_on(logs: Logs) -> None:
    assert measured(logs, "development")["all"].f1.value > 0.94
    assert measured(logs, "reserve")["all"].f1.value > 0.92
