"""The benchmarks measure what they say; how fast anything is, is not tested."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
KEYS = {"name", "unit", "baseline", "ours_per_s", "baseline_per_s", "share", "share_range", "repetitions"}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m benchmarks`` runs at the repository's root."""
    monkeypatch.syspath_prepend(str(ROOT))


def test_the_env_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import __main__ as command
    from benchmarks import env_speed

    monkeypatch.setattr(env_speed, "STEPS", 64)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--only", "envs", "--output", str(tmp_path / "out.json")])
    command.main()
    report = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"].partition(",")[0] for row in report["results"]] == 2 * ["MathChat-v0"] + 2 * [
        "MediumDocEditChat-v0"
    ]
    for row in report["results"]:
        assert set(row) == KEYS
        assert row["share_range"][0] <= row["share"] <= row["share_range"][1]
        assert len(row["repetitions"]["ours_per_s"]) == len(row["repetitions"]["baseline_per_s"]) == 5
    assert report["machine"]["versions"]["gymnasium"]
    assert "MathChat-v0, 64 slots" in capsys.readouterr().out


def test_the_bare_user_gets_the_calls_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import env_speed
    from duologue.simulators import make_simulator

    monkeypatch.setattr(env_speed, "STEPS", 256)
    recorder = env_speed.Recorder(make_simulator("scripted", "MathChat"))
    env = env_speed._env("MathChat-v0", 64, recorder)
    assert env_speed.play(env) == 256
    assert len(recorder.calls[0]) == 64
    assert not any(dialogue.messages for dialogue in recorder.calls[0])
    first = [list(call) for call in recorder.calls]
    recorder.calls.clear()
    env_speed.play(env)
    assert recorder.calls == first, "two repetitions do different work"


def test_works_alternate_and_shares_pair_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import timing

    clock, order = [0.0], []

    def work(name: str, amount: float, seconds: float) -> Any:
        def run() -> float:
            order.append(name)
            clock[0] += seconds
            return amount

        return run

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    made = timing.compare("x", "things", "bare", (work("ours", 10.0, 2.0), work("bare", 20.0, 1.0)), 3)
    assert order == ["ours", "bare", "ours", "bare", "bare", "ours", "ours", "bare"]
    assert (made.ours_per_s, made.baseline_per_s, made.shares) == ((5.0,) * 3, (20.0,) * 3, (0.25,) * 3)


def test_the_share_is_the_median_of_shares() -> None:
    from benchmarks.timing import Comparison

    report = Comparison("x", "things", "bare", (1.0, 8.0, 30.0), (2.0, 10.0, 100.0)).to_json()
    assert (report["share"], report["share_range"]) == (0.5, [0.3, 0.8])
    assert (report["ours_per_s"], report["baseline_per_s"]) == (8.0, 10.0)
