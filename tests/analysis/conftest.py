"""Episodes made by hand, and agents in a module of their own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duologue.types import Episode, Message, StopReason

MakeEpisode = Callable[..., Episode]

AGENTS = '''
import re

def _numbers(messages):
    told = [m["content"] for m in messages if m["role"] == "user"]
    return [int(n) for text in told for n in re.findall(r"\\d+", text)]

def _first(messages):
    return messages[0]["content"].lower()

def adder(messages):
    """Asks until it has two numbers; adds or subtracts them as the question has it."""
    numbers = _numbers(messages)
    if len(numbers) < 2:
        return "Which numbers do you have?"
    a, b = numbers[:2]
    subtract = re.search(r"minus|left|more|fewer|less|still|differ|remain|short|old was", _first(messages))
    return f"The answer is {abs(a - b) if subtract else a + b}."

def constant(messages):
    return "The answer is -7."

def fails_on_books(messages):
    if "how many" in _first(messages):
        raise RuntimeError("no counting today")
    return adder(messages)

def always_fails(messages):
    raise RuntimeError("not today")
'''


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the module ``eval_agents``."""
    (tmp_path / "eval_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield tmp_path
    sys.modules.pop("eval_agents", None)


@pytest.fixture
def episode() -> MakeEpisode:
    def make(seed: int = 0, reward: float | None = 1.0, **fields: Any) -> Episode:
        said: tuple[Message, ...] = (
            {"role": "user", "content": "What is a plus b?"},
            {"role": "assistant", "content": "The answer is 5."},
            {"role": "user", "content": "Thanks!"},
        )
        stop = StopReason.USER_SATISFIED if reward is not None else StopReason.POLICY_ERROR
        given = {"env_id": "MathChat-v0", "task_id": "t", "messages": said, "stop_reason": stop, **fields}
        return Episode(seed=seed, reward=reward, **given)

    return make
