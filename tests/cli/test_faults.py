"""Commands that play dialogues, on a full disk and killed: each dialogue once, numbers as of an undisturbed run."""

import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from duologue.cli.flags import configured
from tests.cli.running import call, program

pytestmark = pytest.mark.usefixtures("agents")
COMMON = ["MathChat-v0", "--agent", "cli_agents:adder", "--episodes", "20", "--num-envs", "4"]


def episodes(file: Path) -> dict[int, dict[str, Any]]:
    """The whole lines of a file by seed; each is there once."""
    whole = file.read_text().rpartition("\n")[0].splitlines() if file.is_file() else []
    rows = [json.loads(line) for line in whole]
    for row in rows:
        row.pop("seconds")
    found = {row["seed"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def until_there_is_room(disk: Any, file: Path, expected: dict[int, dict[str, Any]], *command: str) -> list[int]:
    """Call with more and more room; return how many dialogues each refusal left, all of them as they should be."""
    room = 0
    left: list[int] = []
    while True:
        with disk.full(room):
            result = call(*command)
        found = episodes(file)
        assert found.items() <= expected.items()  # none is lost, none became a reward of 0
        if not result.exit_code:
            return left
        assert result.exit_code == 2, result.output
        [said] = result.stderr.splitlines()
        assert " could not be written: " in said
        assert said.endswith("it keeps finished episodes and plays the missing ones.")
        assert not list(disk.folder.rglob("*.partial"))
        left.append(len(found))
        room += 4096


def test_evaluation_without_room_goes_on_to_the_same_report(small_disk: Any) -> None:
    assert call("evaluate", *COMMON, "--output", "whole").exit_code == 0
    output = small_disk.folder / "evaluated"
    expected = episodes(Path("whole/episodes.jsonl"))
    command = ["evaluate", *COMMON, "--output", str(output)]
    left = until_there_is_room(small_disk, output / "episodes.jsonl", expected, *command)
    assert left == sorted(left)  # what was finished stayed
    assert 0 in left
    assert set(left) & {*range(1, 20)}
    reports = [json.loads((folder / "report.json").read_text()) for folder in (Path("whole"), output)]
    assert [report.pop("config")["output"] for report in reports] == ["whole", str(output)]
    assert reports[0] == reports[1]
    assert {path.name for path in output.iterdir()} == {path.name for path in Path("whole").iterdir()}


def test_collection_without_room_goes_on_to_the_same_logs(small_disk: Any) -> None:
    assert call("collect", *COMMON, "--output", "whole.jsonl").exit_code == 0
    output = small_disk.folder / "logs.jsonl"
    expected = episodes(Path("whole.jsonl.episodes/episodes.jsonl"))
    command = ["collect", *COMMON, "--output", str(output)]
    left = until_there_is_room(
        small_disk, output.with_name("logs.jsonl.episodes") / "episodes.jsonl", expected, *command
    )
    assert set(left) & {*range(1, 20)}
    assert output.read_bytes() == Path("whole.jsonl").read_bytes()


def test_a_rollout_without_room_says_that_it_begins_again(small_disk: Any) -> None:
    output = small_disk.folder / "e.jsonl"
    with small_disk.full(8192):
        result = call("rollout", *COMMON, "--output", str(output))
    assert result.exit_code == 2
    assert result.stderr.endswith("Then remove the file and run the same command: a rollout begins again.\n")
    output.unlink()
    assert call("rollout", *COMMON, "--output", str(output)).exit_code == 0
    assert len(episodes(output)) == 20


def test_a_killed_collection_goes_on_to_the_same_logs() -> None:
    assert call("collect", *COMMON, "--output", "whole.jsonl").exit_code == 0
    died = program("collect", *COMMON, "--output", "cut.jsonl", DIE_AT="30")
    assert died.returncode == -signal.SIGKILL
    file = Path("cut.jsonl.episodes/episodes.jsonl")
    kept = file.read_text()
    assert not Path("cut.jsonl").exists()
    assert 0 < kept.count("\n") < 20
    file.write_text(kept + kept.splitlines()[0][:100])  # as if it had died in the middle of a line
    assert program("collect", *COMMON, "--output", "cut.jsonl").returncode == 0
    assert file.read_text().startswith(kept)
    assert episodes(file) == episodes(Path("whole.jsonl.episodes/episodes.jsonl"))
    assert Path("cut.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_logs_without_room_say_what_to_do(small_disk: Any) -> None:
    assert call("collect", *COMMON, "--output", "whole.jsonl").exit_code == 0
    output = small_disk.folder / "splits"
    with small_disk.full(0):
        result = call("logs", "split", "whole.jsonl", "--output", str(output))
    assert result.exit_code == 2
    assert f"error: {str(output)!r} could not be written: " in result.stderr
    assert result.stderr.endswith(
        "Then remove what is there of train.jsonl, test.jsonl, and run the same command: it splits anew.\n"
    )
    assert not list(small_disk.folder.rglob("*.jsonl*"))
    assert call("logs", "split", "whole.jsonl", "--output", str(output)).exit_code == 0


def test_fidelity_without_room_goes_on_where_it_was(small_disk: Any) -> None:
    pytest.importorskip("sklearn")
    assert call("collect", *COMMON, "--output", "people.jsonl").exit_code == 0
    output = small_disk.folder / "fidelity"
    command = ["fidelity", "MathChat-v0", "--dialogues", "people.jsonl", "--simulator", "scripted:naive"]
    with small_disk.full(8192):
        result = call(*command, "--output", str(output))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"error: {str(output)!r} could not be written: ")
    assert result.stderr.endswith("what users have said is kept, and only what is missing is asked.\n")
    kept = {path: path.read_text().rpartition("\n")[0] for path in output.rglob("*.jsonl")}
    assert any(kept.values())
    assert call(*command, "--output", str(output)).exit_code == 0
    assert all(path.read_text().startswith(text) for path, text in kept.items())


@dataclass(frozen=True)
class Config:
    output: str = field(default="out", metadata={"help": "Where."})


def test_any_other_command_says_it_as_well(small_disk: Any) -> None:
    other = typer.Typer()

    @other.command()
    @configured(Config, positional="")
    def write(config: Config) -> None:
        """Write."""
        Path(config.output).write_text("x" * 100_000)

    with small_disk.full(0):
        result = CliRunner().invoke(other, ["--output", str(small_disk.folder / "out")])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: '{small_disk.folder / 'out'}' could not be written: ")
    assert result.stderr.endswith("Then run the same command again.\n")
