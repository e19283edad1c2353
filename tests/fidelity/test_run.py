"""The whole measurement, from files to table, and its command."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duologue.analysis.fidelity.config import PEOPLE, FidelityConfig
from duologue.analysis.fidelity.report import FidelityReport
from duologue.analysis.fidelity.run import divide, fidelity
from duologue.analysis.fidelity.tables import markdown
from duologue.cli import app
from duologue.errors import DuologueError
from duologue.simulators import ScriptedMathUser
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.types import Dialogue, UserTurn

MATH = "MathChat-v0"


class Fragile:
    """A scripted user that fails on some dialogues."""

    signature = "fragile"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        if any(len(d.messages) == 2 and d.seed % 3 == 0 for d in dialogues):
            raise RuntimeError("no third message")
        return ScriptedMathUser("default").respond(dialogues)


class Broken:
    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        raise RuntimeError("never")


@pytest.fixture(scope="module")
def found(halves: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[FidelityReport, Path]:
    output = tmp_path_factory.mktemp("fidelity")
    config = FidelityConfig(MATH, halves[0], ("scripted", "fragile"), halves[1], None, 6, output=str(output))
    return fidelity(config, {"fragile": Fragile()}), output


def test_a_column_a_speaker_and_a_row_a_measure(found: tuple[FidelityReport, Path]) -> None:
    report, _ = found
    assert report.columns == [PEOPLE, "scripted", "fragile"]
    names = [(row.mode, row.measure.name) for row in report.rows]
    assert len(set(names)) == len(names)
    assert ("free", "turns per dialogue") in names
    assert ("replayed", "turns per dialogue") not in names
    assert ("free", "stop recall") not in names
    assert all(list(row.cells) == report.columns for row in report.rows)


def test_what_failed_is_counted_and_not_fatal(found: tuple[FidelityReport, Path]) -> None:
    report, output = found
    failed = report.about["users"]["fragile"]["failed"]
    assert sum(failed["replayed"].values()) > 0
    assert "no third message" in next(iter(failed["replayed"]))
    assert report.about["users"]["scripted"]["failed"] == {"replayed": {}, "free": {}}
    assert "- fragile, replayed: " in (output / "table.md").read_text()


def test_files_carry_every_number_with_n_interval_and_signature(found: tuple[FidelityReport, Path]) -> None:
    report, output = found
    kept = json.loads((output / "fidelity.json").read_text())
    assert kept == json.loads(json.dumps(report.to_json()))
    assert "agent:hasty-math" in kept["signature"]
    assert kept["held_out"]["dialogues"] == 20
    assert kept["nll"] == {"scripted": None, "fragile": None}
    assert kept["score"]["replayed"][PEOPLE]["value"] == pytest.approx(1.0)
    for row in kept["rows"]:
        for cell in row["cells"].values():
            assert {"value", "low", "high", "n"} == set(cell["value"])
    assert (output / "distances.png").read_bytes().startswith(b"\x89PNG")


def test_scripted_users_have_no_probabilities(found: tuple[FidelityReport, Path]) -> None:
    text = markdown(found[0])
    assert "| nats per token | n/a | n/a | n/a |" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert widths == {5}


@pytest.mark.slow
def test_again_it_asks_nobody(found: tuple[FidelityReport, Path], halves: tuple[str, str]) -> None:
    report, output = found
    before = {path: path.read_bytes() for path in output.rglob("*.jsonl")}
    config = FidelityConfig(MATH, halves[0], ("scripted",), halves[1], None, 6, output=str(output))
    again = fidelity(config)
    assert {path: path.read_bytes() for path in output.rglob("*.jsonl")} == before
    kept, anew = ([row.cells["scripted"].value.to_json() for row in one.rows] for one in (report, again))
    assert kept == anew


def test_another_user_in_its_place_is_refused(found: tuple[FidelityReport, Path], halves: tuple[str, str]) -> None:
    config = FidelityConfig(MATH, halves[0], ("scripted:naive",), halves[1], None, 6, output=str(found[1]))
    with pytest.raises(DuologueError, match="holds another evaluation"):
        fidelity(config)


def test_a_user_that_fails_everywhere_is_an_error(halves: tuple[str, str], tmp_path: Path) -> None:
    config = FidelityConfig(MATH, halves[0], ("broken",), halves[1], output=str(tmp_path))
    with pytest.raises(DuologueError, match=r"failed everywhere.*never.* leave it out"):
        fidelity(config, {"broken": Broken()})


def test_people_are_halved_by_person(people: list[LoggedDialogue], tmp_path: Path) -> None:
    path = write_logs(tmp_path / "people.jsonl", people[:30])
    parts = divide(FidelityConfig(MATH, str(path), ("scripted",)))
    assert len(parts.reference) + len(parts.held_out) == 30
    assert not {d.person for d in parts.reference} & {d.person for d in parts.held_out}
    with pytest.raises(DuologueError, match="share"):
        divide(FidelityConfig(MATH, str(path), ("scripted",), str(path)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"simulators": ()}, "--simulator"),
        ({"simulators": ("a", "a")}, "twice"),
        ({"simulators": (PEOPLE,)}, "twice"),
        ({"dialogues_per_simulator": 0}, "1 or more"),
        ({"seed": -1}, "0 or more"),
    ],
)
def test_what_cannot_work_is_refused_at_once(changed: dict[str, object], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        FidelityConfig(**{"env": MATH, "dialogues": "x.jsonl", "simulators": ("scripted",), **changed})  # type: ignore[arg-type]


def test_the_command(halves: tuple[str, str], tmp_path: Path) -> None:
    arguments = ["fidelity", MATH, "--dialogues", halves[0], "--held-out", halves[1], "--output", str(tmp_path)]
    few = ["--dialogues-per-simulator", "5"]
    done = CliRunner().invoke(app, [*arguments, *few, "--simulator", "scripted"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "told from people" in done.output
    assert (tmp_path / "table.md").is_file()
    missing = CliRunner().invoke(app, ["fidelity", MATH, "--dialogues", "no.jsonl", "--simulator", "scripted"])
    assert missing.exit_code == 2
