import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import duologue.simulators as simulators
from duologue.errors import DuologueError
from duologue.simulators import ReplayUser, check_simulator, make_simulator
from duologue.simulators.human import HumanUser
from duologue.simulators.scripted_document import ScriptedDocumentUser
from duologue.simulators.scripted_math import ScriptedMathUser
from duologue.types import Dialogue, StopReason, Task, UserTurn

from .conftest import FakeUser


def test_specs_name_shipped_users() -> None:
    assert isinstance(make_simulator("scripted", "MathChat-v0"), ScriptedMathUser)
    document = make_simulator("scripted:held-out", "MediumDocEditChat")
    assert isinstance(document, ScriptedDocumentUser)
    assert document.mix.name == "held-out"
    assert isinstance(make_simulator("human", "duologue.envs:MathChat-v0"), HumanUser)


def test_instances_pass_through(math_task: Task) -> None:
    own = ReplayUser({math_task.task_id: ["hi"]})
    assert make_simulator(own, "MathChat") is own
    assert make_simulator(own, "SomeoneElses-v3") is own


@pytest.mark.parametrize(
    ("spec", "env", "message"),
    [
        ("scriptd", "MathChat", "Did you mean 'scripted'"),
        ("scripted:heldout", "MathChat", "Did you mean 'held-out'"),
        ("prompted", "MathChat", "Write 'prompted:MODEL'"),
        ("human:me", "MathChat", "Write 'human'"),
        ("replay", "MathChat", "Write 'replay:FILE.jsonl'"),
        ("replay:/no/such/file", "MathChat", "Give a JSONL file"),
        ("oracular:x", "MathChat", "Choose one of: .*'calibrated'.* 'human', .*'prompted', 'replay', 'scripted'"),
        ("calibrate:x", "MathChat", "Did you mean 'calibrated'"),
        ("calibrated", "MathChat", "Write 'calibrated:FOLDER'"),
        ("calibrated:no/such", "MathChat", "There is no folder 'no/such' .* Make one: duologue calibrate"),
        ("calibrated:sglang:http://127.0.0.1:1", "MathChat", "or .calibrated:sglang:URL#FOLDER. if a server samples"),
        ("calibrated:sglang:http://127.0.0.1:1#no/such", "MathChat", "cannot be reached .* Start the server"),
        ("scripted", "MathsChat-v0", "Did you mean 'MathChat-v0'"),
        ("scripted", "MathChat-v9", "know the environment 'MathChat-v9'. Did you mean 'MathChat-v0'"),
        (ScriptedMathUser, "MathChat", r"Pass an instance: ScriptedMathUser\(...\)"),
        (42, "MathChat", "no respond"),
        (None, "MathChat", "no respond"),
    ],
)
def test_bad_specs_end_with_the_fix(spec: Any, env: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        make_simulator(spec, env)


def test_prompted_specs_make_a_guarded_user(monkeypatch: pytest.MonkeyPatch, fake_chat: Any) -> None:
    asked: list[str] = []

    def make(name: str) -> Any:
        asked.append(name)
        return fake_chat("hi")

    monkeypatch.setattr("duologue.engines.make_chat_model", make, raising=False)
    user = make_simulator("prompted:http://localhost:1/v1", "MathChat")
    assert asked == ["http://localhost:1/v1"]
    assert user.respond([Dialogue(Task("t", "?", "1"), 0)])[0].text == "hi"
    assert str(getattr(user, "signature", "")).endswith("|guarded")


def test_import_is_light() -> None:
    code = (
        "import sys, duologue.simulators; print([m for m in ('torch', 'jinja2', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_public_names_exist() -> None:
    assert all(hasattr(simulators, name) for name in simulators.__all__)


@pytest.mark.parametrize("mix", ["scripted", "scripted:held-out"])
def test_shipped_users_keep_the_contract(math_task: Task, document_task: Task, mix: str) -> None:
    check_simulator(make_simulator(mix, "MathChat"), [math_task])
    check_simulator(make_simulator(mix, "MediumDocEditChat"), [document_task])
    check_simulator(ReplayUser({math_task.task_id: ["hi", "12", "9"]}), [math_task])


COUNTER = itertools.count()


def mutating(dialogue: Dialogue) -> UserTurn:
    dialogue.task.metadata["seen"] = 1  # type: ignore[index]
    return UserTurn("hi")


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        (lambda d: UserTurn(f"hi {next(COUNTER)}"), "keep no state between calls"),
        (lambda d: UserTurn(f"I know it is {d.task.reference}."), "gives the reference away"),
        (lambda d: UserTurn("bye", StopReason.USER_GAVE_UP), "left in the opening"),
        (lambda d: UserTurn("hi<|im_end|>"), "never with a marker"),
        (lambda d: UserTurn(""), "text is empty"),
        (lambda d: "hi", "Return a list of duologue.UserTurn"),
        (lambda d: UserTurn("hi there"), "without leaving"),
        (lambda d: UserTurn(d.messages[-1]["content"][0] if d.messages else "hi"), "an empty message"),
        (mutating, "changed its input"),
    ],
)
def test_breaches_name_the_cause(math_task: Task, turn: Callable[[Dialogue], Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        check_simulator(FakeUser(turn), [math_task, replace(math_task, task_id="apples-2")], max_turns=5)


class Whole:
    """A user that looks at its batch as a whole."""

    def __init__(self, answer: Callable[[Sequence[Dialogue]], Any]) -> None:
        self.answer = answer

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        return self.answer(dialogues)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda ds: [UserTurn(f"one of {len(ds)}") for _ in ds], "another turn than in its batch"),
        (lambda ds: [UserTurn("hi")], "Return one per dialogue"),
        (lambda ds: (UserTurn("hi") for _ in ds), "Return one per dialogue"),
        (lambda ds: [UserTurn(f"seed {s}") for s in sorted(d.seed for d in ds)], "order"),
    ],
)
def test_batch_breaches(math_task: Task, answer: Callable[[Sequence[Dialogue]], Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        check_simulator(Whole(answer), [math_task, replace(math_task, task_id="apples-2")])


def test_exemptions(math_task: Task) -> None:
    check_simulator(FakeUser(lambda d: UserTurn("hi")), [math_task], max_turns=0)
    check_simulator(FakeUser(lambda d: UserTurn(f"{next(COUNTER)}")), [math_task], stochastic=True, max_turns=0)


def test_no_tasks_and_no_simulator(math_task: Task) -> None:
    with pytest.raises(DuologueError, match="Pass at least one Task"):
        check_simulator(FakeUser(lambda d: UserTurn("hi")), [])
    with pytest.raises(DuologueError, match="Pass an instance"):
        check_simulator(ScriptedMathUser, [math_task])  # type: ignore[arg-type]


def test_prompts_ship_with_the_package() -> None:
    folder = Path(simulators.__file__).parent / "prompts"
    assert {file.name for file in folder.glob("*.jinja")} >= {"MathChat.jinja", "MediumDocEditChat.jinja"}
