"""Agents by spec. Only functions and servers here: models load in the slow tests of the engines."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.errors import DuologueError
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Agent, ChatAgent, FunctionAgent, Limits
from duologue.trainers.conversation import Conversation
from duologue.types import Message

SOURCE = """
from spec_agent_helper import WORD

def reply(messages):
    return f"{WORD} {len(messages)}"

class Bot:
    def __call__(self, messages):
        return "bot"

    def method(self, messages):
        return "method"

bot = Bot()
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with agents in it; what is imported from it is forgotten afterwards."""
    (tmp_path / "spec_agents.py").write_text(SOURCE)
    (tmp_path / "spec_agent_helper.py").write_text("WORD = 'heard'")
    (tmp_path / "spec_broken.py").write_text("1 / 0")
    (tmp_path / "spec_needs.py").write_text("import a_module_nobody_has")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("spec_")]:
        del sys.modules[name]


def make(spec: str, system_prompt: str | None = None) -> Agent:
    return make_agent(spec, Limits(max_tokens_per_turn=17), 0.5, system_prompt)


def say(agent: Agent) -> str:
    reply = agent.act([Conversation((Message(role="user", content="hi"),))])[0]
    assert reply.error is None
    return reply.text


@pytest.mark.parametrize(
    ("spec", "said"),
    [("spec_agents:reply", "heard 1"), ("spec_agents:bot", "bot"), ("spec_agents:bot.method", "method")],
)
def test_functions_come_from_the_working_directory(folder: Path, spec: str, said: str) -> None:
    agent = make(spec)
    assert isinstance(agent, FunctionAgent)
    assert say(agent) == said


def test_an_edited_function_is_another_agent(folder: Path) -> None:
    before = make("spec_agents:reply").signature
    assert before.startswith("spec_agents:reply@")
    assert make("spec_agents:reply").signature == before
    (folder / "spec_agents.py").write_text(SOURCE + "# edited\n")
    assert make("spec_agents:reply").signature != before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("spec_agents:repli", r"spec_agents has no 'repli' .* Did you mean 'reply'\?"),
        ("spec_agents:bot.metod", r"Did you mean 'method'|Choose one of"),
        ("spec_agents:number", "is of type int, not a function"),
        ("spec_agents:Bot", "is the class Bot, not a function"),
        ("spec_agent:reply", "no module 'spec_agent'.*Run in the folder that holds it"),
        ("spec_agents.deeper:reply", "no module 'spec_agents.deeper'"),
        ("spec_broken:reply", r"raised ZeroDivisionError.*Fix spec_broken\."),
        ("spec_needs:reply", r"needs the module 'a_module_nobody_has'. Install it\."),
    ],
)
def test_what_is_no_function_says_why(folder: Path, spec: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        make(spec)


def test_a_function_takes_no_system_prompt(folder: Path) -> None:
    with pytest.raises(DuologueError, match="Leave system_prompt out"):
        make("spec_agents:reply", "Be brief.")


def test_a_url_is_a_server() -> None:
    agent = make("http://127.0.0.1:9/v1#some-model", "Be brief.")
    assert isinstance(agent, ChatAgent)
    assert agent.signature == "some-model@http://127.0.0.1:9/v1|t:0.5|turn:17"
    assert agent.system == [{"role": "system", "content": "Be brief."}]


def test_anything_else_is_a_model(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    asked: list[str] = []

    def load_model(name: str) -> None:
        asked.append(name)
        raise DuologueError("no such model")

    monkeypatch.setattr("duologue.engines.models.load_model", load_model)
    (folder / "run:1").mkdir()
    for spec in ("default", "org/name", "runs/interactive", "run:1"):
        with pytest.raises(DuologueError, match="no such model"):
            make(spec)
    assert asked == ["default", "org/name", "runs/interactive", "run:1"]
