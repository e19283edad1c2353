"""Whole measurements on dialogues that are there: known variation, monotone, and nothing where there is nothing."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from duologue.analysis.shift import ShiftReport, arms_figure, measure_shift, shift_figure
from duologue.analysis.shift.report import markdown, table
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Episode, Message, StopReason, Task

from .conftest import TASK, TURNS, Make, exact_variation, histories, states

N = 150


def find(_: str) -> Task:
    return TASK


def logged(episodes: Sequence[Episode]) -> list[LoggedDialogue]:
    return [LoggedDialogue(f"log-{e.seed}", TASK, e.messages, metadata={"reward": e.reward or 0.0}) for e in episodes]


class Lengths:
    """A reference to which a history is the less likely the more messages it has."""

    signature = "lengths"

    def scores(self, messages: Sequence[Message]) -> list[float | None]:
        return [-1.0 - i + 0.01 * len(messages[0]["content"]) for i in range((len(messages) + 1) // 2)]


@pytest.fixture(scope="module")
def report(known: Make) -> ShiftReport:
    logs = logged(known(N, 0.6, seed=1))
    human, simulated = known(N, 0.2, seed=2, first=1000), known(N, 0.2, tells=0.4, seed=3, first=2000)
    return measure_shift(logs, human, simulated, find, signatures={"logs": "L", "human": "H", "simulated": "S"})


def test_known_shifts_are_found(report: ShiftReport) -> None:
    """Three shifts of known policies and users: intervals hold the exact variation, the classifier stays below it."""
    systems = {
        "policy": ((0.6, 1.0), (0.2, 1.0)),
        "simulator": ((0.2, 0.4), (0.2, 1.0)),
        "both": ((0.6, 1.0), (0.2, 0.4)),
    }
    assert report.turns == TURNS
    assert list(report.pairs) == list(systems)
    for name, (a, b) in systems.items():
        for turn in range(TURNS):
            truth, pair = exact_variation(states, turn, a, b), report.pairs[name]
            found = pair.states.turns[turn].estimate
            assert found.low - 0.03 <= truth <= found.high + 0.03, (name, turn)
            assert abs(found.value - truth) < 0.11, (name, turn)
            assert pair.classifier[turn].low <= exact_variation(histories, turn, a, b), (name, turn)
            assert truth <= exact_variation(histories, turn, a, b) + 1e-12
        assert report.pairs[name].states.p < 0.01
        assert not report.pairs[name].paired


def test_more_haste_more_shift(known: Make) -> None:
    human = known(N, 0.1, seed=2, first=1000)
    found = [
        measure_shift(logged(known(N, haste, seed=1)), human, [], find, turns=2)
        .pairs["policy"]
        .states.turns[1]
        .estimate.value
        for haste in (0.1, 0.4, 0.8)
    ]
    assert found[0] < 0.12 < found[1] < 0.45 < found[2]


def test_paired_dialogues_of_one_system_do_not_differ(known: Make) -> None:
    episodes = known(20, 0.5)
    found = measure_shift([], episodes, episodes, find).pairs["simulator"]
    assert found.paired
    assert found.states.p == 1.0
    assert [t.estimate.value for t in found.states.turns] == [0.0] * TURNS
    assert (found.gap.value, found.gap.n) == (0.0, 20)
    assert found.bounds is None


def test_partners_are_found_in_any_order_and_the_rest_is_left_out(known: Make) -> None:
    human = known(20, 0.5)
    failed = replace(human[3], stop_reason=StopReason.SIMULATOR_ERROR, reward=None)
    found = measure_shift([], human, [*reversed(human[4:]), failed], find)
    assert found.pairs["simulator"].n == (16, 16)
    assert found.pairs["simulator"].states.p == 1.0
    assert found.left_out == {"logs": 0, "human": 0, "simulated": 1}


def test_lengths_that_differ_are_a_shift_of_their_own(known: Make) -> None:
    human = known(40, 0.0, first=100)
    short = [replace(e, seed=e.seed + 500, messages=e.messages[:2]) for e in human]
    found = measure_shift([], human, short, find).pairs["simulator"]
    assert found.reached == ((1.0, 1.0), (0.0, 1.0), (0.0, 1.0))
    assert [t.plug_in for t in found.states.turns] == [0.0, 1.0, 1.0]


def test_likelihoods_compare_those_who_are_still_there(known: Make) -> None:
    human, other = known(12, 0.5), known(12, 0.5, first=100)
    longer = [
        replace(e, messages=(Message(role="user", content=e.messages[0]["content"] + "!!"), *e.messages[1:]))
        for e in other
    ]
    steps: list[tuple[int, int]] = []
    made = measure_shift(
        [], human, longer, find, reference=Lengths(), on_step=lambda done, total: steps.append((done, total))
    )
    found = made.pairs["simulator"]
    assert made.signature.endswith("; reference: lengths")
    assert steps == [(i, 24 + TURNS) for i in range(1, 25 + TURNS)]
    assert found.likelihood is not None
    assert [e.value for e in found.likelihood] == pytest.approx([0.02] * TURNS)


def test_turns_can_be_limited(known: Make) -> None:
    episodes = known(12, 0.5)
    assert measure_shift(logged(episodes), episodes, [], find, turns=2).turns == 2
    assert measure_shift(logged(episodes), episodes, [], find, turns=99).turns == TURNS


def test_reports_carry_n_intervals_and_signatures(report: ShiftReport) -> None:
    row = json.loads(json.dumps(report.to_json(), allow_nan=False))
    pair = row["pairs"]["policy"]
    assert pair["signature"] == "L / H|shift-seed:0"
    assert pair["n"] == [N, N]
    assert {"value", "low", "high", "n", "p", "plug_in", "null"} <= set(pair["states"]["by_turn"][0])
    assert row["signature"] == "logs: L; human: H; simulated: S"
    text = markdown(report)
    assert text.count("| policy |") == TURNS
    assert "gap of scores" in text
    assert table(report).row_count == 3 * TURNS


def test_figures(report: ShiftReport, tmp_path: Path) -> None:
    one = shift_figure(report, tmp_path / "one.png")
    arms = arms_figure({"static": report, "naive": report}, tmp_path / "arms.png", "classifier")
    assert min(one.stat().st_size, arms.stat().st_size) > 5000
    with pytest.raises(DuologueError, match="nothing to draw"):
        arms_figure({}, tmp_path / "none.png")


def test_small_sets_have_no_classifier(known: Make) -> None:
    found = measure_shift([], known(4, 0.5), known(4, 0.5, first=9), find)
    assert math.isnan(found.pairs["simulator"].classifier[0].value)
    assert found.to_json()["pairs"]["simulator"]["classifier"][0]["value"] is None
    assert "n/a" in markdown(found)


def test_what_cannot_be_measured_is_refused(known: Make) -> None:
    episodes = known(4, 0.5)
    with pytest.raises(DuologueError, match="Play some first"):
        measure_shift([], [], episodes, find)
    with pytest.raises(DuologueError, match="2 environments"):
        measure_shift([], episodes, [replace(e, env_id="MediumDocEditChat-v0") for e in episodes], find)
    with pytest.raises(DuologueError, match="Chess"):
        measure_shift([], [replace(e, env_id="Chess-v0") for e in episodes], [], find)
