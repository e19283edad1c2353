import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest

from duologue.errors import DuologueError
from duologue.rewards import math_checker
from duologue.rewards.equality import answers_equal, compare
from duologue.rewards.math_checker import MathChecker, WorkerFailedError, WorkerTimeoutError

HANGS = "9^{9^{9^{9}}}"


@pytest.fixture(scope="module")
def checker() -> Iterator[MathChecker]:
    checker = MathChecker(timeout=20)
    yield checker
    checker.close()


@pytest.mark.parametrize(
    ("given", "gold", "equal"),
    [
        (r"\frac{\sqrt{3}}{2}", "sqrt(3)/2", True),
        ("2x + 1", "y = 1 + 2x", True),
        ("(x+1)^2", "x^2+2x+1", True),
        (r"\{1, 2\}", "{2, 1}", True),
        ("2, 1", "1, 2", True),
        ("3!", "6", True),
        ("2^{10}", "1024", True),
        ("3√13", r"3\sqrt{13}", True),
        ("(1, 2.0)", "(1, 2)", True),
        (r"\left( 3, \frac{\pi}{2} \right)", "(3, pi/2)", True),
        ("(-\\infty, 3]", "(-∞,3]", True),
        ("(2, 1)", "(3, 1)", False),
        ("(1, 2)", "(2, 1)", False),
        ("[1, 2)", "(1, 2)", False),
        ("(1, 2, 3)", "(1, 2)", False),
        ("3, 4, 5", "5", False),
        ("3 apples and 5 pears", "5", False),
        ("3x", "3", False),
        (r"\frac{1", "2", False),
        ("1/0", "2", False),
    ],
)
def test_algebra(checker: MathChecker, given: str, gold: str, equal: bool) -> None:
    assert compare(given, gold, checker) is equal


def test_a_hanging_expression_is_killed_and_the_next_works() -> None:
    checker = MathChecker(timeout=0.5)
    with pytest.raises(WorkerTimeoutError):
        checker.equal(HANGS, "1")
    assert checker.pids == ()
    checker._workers[0]._start()
    checker.timeout = 20
    assert checker.equal("2 + 2", "4")
    checker.close()


def test_a_worker_killed_in_use_fails_and_the_next_works(checker: MathChecker) -> None:
    assert checker.equal("3!", "6")
    (pid,) = checker.pids
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(WorkerFailedError, match="-9"):
        checker.equal(HANGS, "1")
    assert checker.equal("3!", "6")
    assert checker.pids != (pid,)


def test_a_worker_killed_while_idle_is_replaced(checker: MathChecker) -> None:
    assert checker.equal("3!", "6")
    os.kill(checker.pids[0], signal.SIGKILL)
    time.sleep(0.1)
    assert checker.equal("4!", "24")


def test_threads_get_their_own_answers(checker: MathChecker) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: checker.equal(f"{n} + {n}", str(2 * n + n % 2)), range(40)))
    assert found == [n % 2 == 0 for n in range(40)]
    assert len(checker.pids) == 1


def test_forked_daemon_starts_its_own_worker(checker: MathChecker) -> None:
    assert checker.equal("3!", "6")
    ours, theirs = multiprocessing.Pipe()

    def child(connection: Connection) -> None:
        connection.send((checker.equal("4!", "24"), checker.pids))

    process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,), daemon=True)
    process.start()
    assert ours.poll(30)
    equal, pids = ours.recv()
    process.join()
    assert equal
    assert pids != checker.pids
    assert checker.equal("5!", "120")
    ours.close()
    theirs.close()


def test_nothing_is_left_at_exit() -> None:
    code = (
        "from duologue.rewards.math_checker import MathChecker\n"
        "c = MathChecker(20)\nassert c.equal('3!', '6')\nprint(c.pids[0])"
    )
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(run.stdout), 0)


def test_an_orphan_that_hangs_ends_itself() -> None:
    command = [sys.executable, "-P", str(math_checker._SCRIPT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin
        assert worker.stdout
        assert worker.stdout.readline() == '{"ready": true}\n'
        worker.stdin.write(json.dumps({"given": HANGS, "gold": "1", "seconds": 0.2}) + "\n")
        worker.stdin.flush()
        assert worker.wait(timeout=60) == -signal.SIGALRM


def test_missing_math_verify_names_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    script = os.path.join(tmp_path, "worker.py")
    with open(script, "w") as file:
        file.write("import sys\nsys.exit(3)\n")
    monkeypatch.setattr(math_checker, "_SCRIPT", script)
    with pytest.raises(DuologueError, match="pip install math-verify"):
        MathChecker().equal("3!", "6")


@pytest.mark.parametrize(("timeout", "workers"), [(0, 1), (-1, 1), (5, 0), (float("nan"), 1)])
def test_bad_arguments(timeout: float, workers: int) -> None:
    with pytest.raises(DuologueError, match=r"Give e\.g\."):
        MathChecker(timeout, workers)


def test_answers_equal_remembers() -> None:
    assert answers_equal("(x+1)^2", "x^2+2x+1") is True
    hits = answers_equal.cache_info().hits
    assert answers_equal("(x+1)^2", "x^2+2x+1") is True
    assert answers_equal.cache_info().hits == hits + 1
    assert answers_equal.cache_info().maxsize is not None
