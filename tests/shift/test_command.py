"""``duologue shift`` with scripted parts, from logs to files."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duologue.analysis import CollectConfig
from duologue.analysis.collect import collect
from duologue.analysis.shift import ReferenceModel, ShiftConfig, shift
from duologue.cli import app
from duologue.errors import DuologueError
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Limits

HASTY = "scripted:hasty-math,haste="
HUMAN = "scripted:held-out"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["shift", *map(str, arguments)], env={"COLUMNS": "160"})


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs.jsonl"
    collect(CollectConfig(agent=f"{HASTY}0.8", simulator=HUMAN, episodes=30, output=str(path)))
    return path


def test_from_logs_to_files(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ["MathChat-v0", "--logs", logs, "--agent", f"{HASTY}0.1", "--simulator", "scripted:naive"]
    given += ["--episodes", 30, "--max-turns", 3, "--output", out]
    result = call(*given)
    assert result.exit_code == 0, result.output
    assert "simulator" in result.output
    assert {p.name for p in out.iterdir()} == {"human", "simulated", "shift.json", "table.md", "shift.png"}
    found = json.loads((out / "shift.json").read_text())
    assert found["turns"] == 3
    assert found["pairs"]["simulator"]["paired"]
    assert found["pairs"]["policy"]["n"] == [30, 30]
    assert found["left_out"] == {"logs": 0, "human": 0, "simulated": 0, "replies": 0, "answers": 0}
    assert found["notes"] == []
    # The acts of turn 0 differ by the difference of the hastes, 0.7; after that, not less than nothing.
    first = found["policy_deviation"]["by_turn"][0]
    assert first["low"] <= 0.7 <= first["high"]
    for pair in found["pairs"].values():
        assert pair["bounds"]["linear"]["value"] <= pair["bounds"]["quadratic"]["value"] + 1e-9
    again = call(*given)
    assert again.exit_code == 0, again.output
    assert json.loads((out / "shift.json").read_text()) == found


def test_the_same_user_twice_and_the_logs_own_policy(logs: Path, tmp_path: Path) -> None:
    config = ShiftConfig(
        logs=str(logs),
        agent=f"{HASTY}0.8",
        simulator=HUMAN,
        human=HUMAN,
        episodes=20,
        max_turns=3,
        output=str(tmp_path / "out"),
    )
    found = shift(config)
    assert found.pairs["simulator"].states.p == 1.0
    assert found.user_deviation is not None
    assert found.user_deviation.p == 1.0
    assert found.policy_deviation is not None
    assert found.policy_deviation.p == 1.0  # its randomness comes from the history alone
    assert found.pairs["policy"].states.p > 0.01


def test_another_user_than_the_logs_is_said(logs: Path, tmp_path: Path) -> None:
    config = ShiftConfig(logs=str(logs), human="scripted", episodes=5, max_turns=2, output=str(tmp_path / "out"))
    (note,) = shift(config, make_agent(f"{HASTY}0.5", Limits(), 1.0, None)).notes
    assert "held-out" in note
    assert note.endswith("Give the logs' user as --human to measure the policy's alone.")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "--logs"),
        (["--logs", "none.jsonl"], "none.jsonl"),
        (["--logs", "none.jsonl", "--episodes", 0], "episodes is 0"),
    ],
)
def test_mistakes_are_said_in_a_line(given: list[object], message: str) -> None:
    result = call(*given)
    assert result.exit_code == 2
    assert message in result.output


def test_tasks_that_are_named_are_played(logs: Path, tmp_path: Path) -> None:
    config = ShiftConfig(
        logs=str(logs), agent=f"{HASTY}0.5", tasks="math:level=1,split=test", episodes=5, output=str(tmp_path / "out")
    )
    assert "split=test" in shift(config).signature
    with pytest.raises(DuologueError, match="--overwrite"):
        shift(ShiftConfig(logs=str(logs), agent=f"{HASTY}0.6", episodes=5, output=str(tmp_path / "out")))


@pytest.mark.slow
def test_a_real_reference() -> None:
    model = ReferenceModel("default")
    plain = [{"role": "user", "content": "What is two plus three?"}, {"role": "assistant", "content": "Five."}]
    odd = [{"role": "user", "content": "Plus what three two is zqx?"}, {"role": "assistant", "content": "Five."}]
    last = {"role": "user", "content": "Thank you!"}
    scores = model.scores([*plain, last])  # type: ignore[list-item]
    assert len(scores) == 2
    assert all(score is not None and -10 < score < 0 for score in scores)
    assert model.scores(plain)[0] == pytest.approx(scores[0], abs=1e-3)  # type: ignore[arg-type]
    assert scores[0] > model.scores(odd)[0]  # type: ignore[arg-type,operator]
