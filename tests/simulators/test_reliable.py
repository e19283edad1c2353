import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from duologue.engines import RepliesError
from duologue.errors import DuologueError
from duologue.simulators.reliable import answer_all
from duologue.types import Dialogue, StopReason, Task, UserTurn

GOOD = UserTurn("fine")
DIALOGUES = [Dialogue(Task(f"t{i}", "?", "1"), i) for i in range(4)]


@dataclass
class Flaky:
    """Returns or raises whatever is set for a batch, and for a single row by task id."""

    batch: Any = None
    single: dict[str, Any] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    signature: str = "flaky"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.calls.append(len(dialogues))
        if len(dialogues) > 1 and self.batch is not None:
            answer = self.batch
        else:
            answer = [self.single.get(d.task.task_id, GOOD) for d in dialogues]
        bad = answer if isinstance(answer, Exception) else answer[0] if isinstance(answer, list) and answer else None
        if isinstance(bad, Exception):
            raise bad
        if isinstance(bad, threading.Event):
            bad.wait(60)
        return answer  # type: ignore[no-any-return]


def test_a_good_batch_takes_one_call() -> None:
    user = Flaky()
    assert answer_all(user, DIALOGUES, 5.0) == [GOOD] * 4
    assert user.calls == [4]


@pytest.mark.parametrize("batch", [RuntimeError("boom"), [GOOD], "junk", 7, [None] * 4, [UserTurn("")] * 4])
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_bad_batch_is_tried_singly(batch: object, timeout: float | None) -> None:
    user = Flaky(batch)
    assert answer_all(user, DIALOGUES, timeout) == [GOOD] * 4
    assert user.calls == [4, 1, 1, 1, 1]


@dataclass
class OneUnlucky:
    """A model's user: a call with the unlucky dialogue in it fails, and tells which row it was."""

    calls: list[list[str]] = field(default_factory=list)

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.calls.append([d.task.task_id for d in dialogues])
        if "t2" in self.calls[-1]:
            fault = DuologueError("Full. Wait.")
            raise RepliesError([fault if d.task.task_id == "t2" else "fine" for d in dialogues])
        return [GOOD] * len(dialogues)


def test_rows_that_a_model_did_not_fail_at_are_asked_for_in_one_call() -> None:
    user = OneUnlucky()
    answers = answer_all(user, DIALOGUES, 5.0)
    assert [answer == GOOD for answer in answers] == [True, True, False, True]
    assert "failed twice on task 't2'" in str(answers[2])
    assert user.calls == [["t0", "t1", "t2", "t3"], ["t0", "t1", "t3"], ["t2"]]


def test_only_the_invalid_rows_are_tried_again() -> None:
    user = Flaky([GOOD, UserTurn(3), GOOD, "text"])  # type: ignore[arg-type]
    assert answer_all(user, DIALOGUES, 5.0) == [GOOD] * 4
    assert user.calls == [4, 1, 1]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
        (UserTurn(" "), "text is empty"),
        (UserTurn("x", StopReason.TURN_LIMIT), "Use StopReason.USER_SATISFIED"),
        (UserTurn("x", "done"), "Use StopReason.USER_SATISFIED"),  # type: ignore[arg-type]
        (UserTurn(None), "Make UserTurn.text a str"),  # type: ignore[arg-type]
        ({"text": "x"}, "Return a list of duologue.UserTurn"),
    ],
)
def test_one_bad_row_spoils_itself_alone(bad: object, why: str) -> None:
    results = answer_all(Flaky(RuntimeError("batch"), {"t2": bad}), DIALOGUES, 5.0)
    assert [r for i, r in enumerate(results) if i != 2] == [GOOD] * 3
    error = results[2]
    assert isinstance(error, DuologueError)
    assert why in str(error)
    assert "'flaky' failed twice on task 't2'" in str(error)
    assert str(error).endswith("check_simulator(simulator, tasks).")


def test_leaving_without_a_word_is_valid() -> None:
    leaving = UserTurn("", StopReason.USER_GAVE_UP)
    assert answer_all(Flaky(single={"t0": leaving}), DIALOGUES[:1], 5.0) == [leaving]


def test_a_hang_is_an_error_and_the_others_go_on() -> None:
    release = threading.Event()
    results = answer_all(Flaky([release], {"t1": [release]}), DIALOGUES[:1], 0.05)
    assert results == [GOOD]
    user = Flaky(RuntimeError("batch"), {"t1": release})
    results = answer_all(user, DIALOGUES, 0.2)
    assert [isinstance(r, UserTurn) for r in results] == [True, False, True, True]
    assert "did not answer in 0.2 s" in str(results[1])
    release.set()


def test_the_wait_is_bounded_when_everything_hangs() -> None:
    release = threading.Event()
    many = [Dialogue(Task(f"h{i}", "?", "1"), i) for i in range(50)]
    user = Flaky([release], {d.task.task_id: release for d in many})
    results = answer_all(user, many, 0.05)
    assert len(user.calls) == 4
    assert all(isinstance(r, DuologueError) and "Raise the time-out" in str(r) for r in results)
    release.set()


def test_no_thread_without_a_timeout() -> None:
    seen = []

    class Here:
        def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
            seen.append(threading.current_thread())
            return [GOOD for _ in dialogues]

    answer_all(Here(), DIALOGUES, None)
    assert seen == [threading.main_thread()]


def test_nothing_to_ask() -> None:
    assert answer_all(Flaky(RuntimeError()), [], 1.0) == []


def test_a_hanging_user_does_not_hold_up_the_exit() -> None:
    code = (
        "import time\n"
        "from duologue.simulators.reliable import answer_all\n"
        "from duologue.types import Dialogue, Task\n"
        "class Hang:\n"
        "    def respond(self, dialogues): time.sleep(600)\n"
        "print(answer_all(Hang(), [Dialogue(Task('t', '', ''), 0)], 0.05))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "failed twice" in done.stdout
