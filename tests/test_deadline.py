"""Calls with a deadline: one worker per calling thread, none lost, none shared, none left over."""

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable

import pytest

from duologue.deadline import call_within
from duologue.errors import DuologueError

LONG = 30.0


def here() -> threading.Thread:
    return call_within(threading.current_thread, LONG)


def in_a_thread(function: Callable[[], object]) -> list[object]:
    """Return [result] of a function that ran in a thread of its own, or [] if it raised."""
    box: list[object] = []
    thread = threading.Thread(target=lambda: box.append(function()))
    thread.start()
    thread.join(LONG)
    return box


def test_results_and_errors_come_back() -> None:
    assert call_within(lambda: 7, LONG) == 7
    assert call_within(lambda: None, LONG) is None
    with pytest.raises(ZeroDivisionError):
        call_within(lambda: 1 // 0, LONG)
    assert call_within(lambda: 8, LONG) == 8


def test_without_a_deadline_the_call_stays_in_its_thread() -> None:
    assert call_within(threading.current_thread, None) is threading.current_thread()


def test_a_caller_keeps_its_worker_also_after_errors() -> None:
    first = here()
    with pytest.raises(ZeroDivisionError):
        call_within(lambda: 1 // 0, LONG)
    assert here() is first is not threading.current_thread()
    assert first.daemon


def test_a_call_that_hangs_is_left_behind_and_its_late_result_goes_nowhere() -> None:
    release, first = threading.Event(), here()
    with pytest.raises(TimeoutError, match=r"did not answer in 0\.01 s\. Raise the time-out"):
        call_within(lambda: release.wait(LONG), 0.01)
    second = here()
    assert second is not first
    release.set()
    assert call_within(lambda: "fresh", LONG) == "fresh"
    first.join(LONG)
    assert not first.is_alive()  # it does not wait for further calls
    assert here() is second


def test_callers_do_not_wait_for_one_another() -> None:
    meeting = threading.Barrier(4, timeout=LONG)  # all four calls must be running at once
    boxes: list[object] = []
    callers = [threading.Thread(target=lambda: boxes.append(call_within(meeting.wait, LONG))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(LONG)
    assert sorted(map(str, boxes)) == ["0", "1", "2", "3"]


def test_a_call_may_make_calls() -> None:
    inner, outer = call_within(lambda: (here(), threading.current_thread()), LONG)
    assert inner is not outer


def test_a_worker_ends_with_its_caller() -> None:
    (worker,) = in_a_thread(here)
    assert isinstance(worker, threading.Thread)
    worker.join(LONG)
    assert not worker.is_alive()


def test_many_calls_need_no_more_threads() -> None:
    here()
    before = threading.active_count()
    for _ in range(200):
        call_within(lambda: None, LONG)
    assert threading.active_count() == before


class Model:
    """Something large."""

    def answer(self) -> "list[Model]":
        return [Model()]


def test_an_idle_worker_keeps_nothing_alive() -> None:
    model = Model()
    answer = call_within(model.answer, LONG)
    kept = [weakref.ref(model), weakref.ref(answer[0])]
    call_within(lambda: None, LONG)  # the worker has put its last outcome down by the time it takes the next call
    del model, answer
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
def test_foreign_code_cannot_end_the_worker(error: BaseException) -> None:
    def leave() -> None:
        raise error

    first = here()
    with pytest.raises(DuologueError, match="Raise an Exception instead"):
        call_within(leave, LONG)
    assert here() is first


def test_an_interrupted_wait_leaves_its_worker_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a call runs: its result must not be taken for that of the next call."""
    from duologue import deadline

    here()
    release, wait = threading.Event(), deadline._Worker.call

    def interrupted(worker: deadline._Worker, function: Callable[[], object], seconds: float) -> object:
        worker._calls.put(function)
        raise KeyboardInterrupt

    monkeypatch.setattr(deadline._Worker, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_within(lambda: release.wait(LONG) and "old", LONG)
    monkeypatch.setattr(deadline._Worker, "call", wait)
    release.set()
    assert call_within(lambda: "new", LONG) == "new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_works_in_a_forked_copy() -> None:
    assert call_within(lambda: 1, LONG) == 1
    sys.stdout.flush()
    child = os.fork()
    if child == 0:  # no assertion and no clean-up of pytest's in here
        try:
            os._exit(0 if call_within(lambda: 41, LONG) == 41 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert call_within(lambda: 2, LONG) == 2
