"""Assistants that commands can name, in the folder where each test runs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENTS = """
import os, re, signal
calls = 0

def adder(messages):
    global calls
    calls += 1
    if calls == int(os.environ.get("DIE_AT", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    numbers = [int(n) for m in messages if m["role"] == "user" for n in re.findall(r"\\d+", m["content"])]
    if len(numbers) < 2:
        return "Which numbers?"
    return f"The answer is {numbers[0] + numbers[1]}."

def fails(messages):
    raise RuntimeError("no")
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, with ``cli_agents.py`` in it."""
    (tmp_path / "cli_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield tmp_path
    sys.modules.pop("cli_agents", None)
