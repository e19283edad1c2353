"""A user with one fault is flagged on the rows of that fault, and on no others; one without is not flagged."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from duologue.analysis.fidelity.compare import Column, columns_of_people, rows_of
from duologue.analysis.fidelity.config import PEOPLE
from duologue.analysis.fidelity.form import word_list
from duologue.analysis.fidelity.measures import measures
from duologue.analysis.fidelity.replay import replay
from duologue.analysis.fidelity.report import FidelityReport
from duologue.analysis.fidelity.turns import talk_of_log, unprompted
from duologue.simulators import ScriptedMathUser, Simulator
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Dialogue, StopReason, UserTurn

CALM = "default,miss_error=0.1,doubt_right=0,confusion=0.05,volunteers=0"

MATH = "MathChat-v0"


class Verbose:
    """Says everything three times."""

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        turns = ScriptedMathUser(CALM).respond(dialogues)
        return [replace(turn, text=" ".join([turn.text] * 3)) for turn in turns]


class Hasty:
    """Leaves with the words that it would have said, four times out of five."""

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        turns = ScriptedMathUser(CALM).respond(dialogues)
        pairs = zip(turns, dialogues, strict=True)
        leaves = StopReason.USER_GAVE_UP
        return [replace(t, stop=leaves) if d.messages and (d.seed + len(d.messages)) % 5 else t for t, d in pairs]


@pytest.mark.slow
def test_each_fault_has_its_rows(people: list[LoggedDialogue]) -> None:
    report = measured(
        people,
        {
            "clean": ScriptedMathUser(CALM),
            "sycophantic": ScriptedMathUser(f"{CALM},sycophancy=1"),
            "leaky": ScriptedMathUser(f"{CALM},leak=1"),
            "verbose": Verbose(),
            "hasty": Hasty(),
        },
    )
    assert flags(report, PEOPLE) == set()
    assert flags(report, "clean") == set()
    told, looks = "told from people (AUC)", {"distinct-1", "distinct-2", "pairwise BLEU", "unlisted words"}
    agrees = {
        "act: ask",
        "questions",
        "act: correct",
        "act: accept",
        "act: reject",
        "act: thank",
        "act: stop",
        "act: reveal",
        "negations",
        "words per turn",
    }
    assert "wrong accepted" in flags(report, "sycophantic") <= {"wrong accepted", told, *agrees, *looks}
    says_more = {"questions", "words per turn", "act: reveal", "role flips", "act: correct", "act: accept", "act: ask"}
    assert "leaks" in flags(report, "leaky") <= {"leaks", told, *says_more, *looks}
    assert {"words per turn", told} <= flags(report, "verbose") <= {"words per turn", told, *looks}
    assert "act: stop" in flags(report, "hasty") <= {"act: stop", "wrong accepted", "right refused"}
    assert value(report, "premature stops", "hasty") > 0.7
    assert value(report, "premature stops", "clean") < 0.1
    for fault in ("sycophantic", "leaky", "verbose", "hasty"):
        assert report.score(fault).value < report.score("clean").value


def measured(people: list[LoggedDialogue], users: dict[str, Simulator]) -> FidelityReport:
    reference, held_out = people[::2], people[1::2]
    known = [talk_of_log(d, MATH) for d in reference]
    columns = columns_of_people(unprompted([talk_of_log(d, MATH) for d in held_out]), known)
    for name, user in users.items():
        beside = replay(user, held_out, MATH)
        columns[name] = Column(beside.talks, beside.people, paired=True)
    rows = rows_of({"replayed": columns}, {"replayed": known}, measures(word_list(people)))
    return FidelityReport("test", {}, rows, {})


def flags(report: FidelityReport, name: str) -> set[str]:
    return {row.measure.name for row in report.rows if row.cells[name].differs}


def value(report: FidelityReport, measure: str, name: str) -> float:
    [row] = [row for row in report.rows if row.measure.name == measure]
    return row.cells[name].value.value


def test_the_score_is_1_for_people_and_bounded(people: list[LoggedDialogue]) -> None:
    report = measured(people[:40], {"verbose": Verbose()})
    assert report.score(PEOPLE).value == pytest.approx(1.0)
    score = report.score("verbose")
    assert 0 <= score.low <= score.value <= score.high < 1
