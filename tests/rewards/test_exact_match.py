import copy
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from duologue.rewards import ExactMatch
from duologue.types import Dialogue, Task

DATA = Path(__file__).parents[2].parent / "shared" / "data"
HANGS = r"\boxed{9^{9^{9^{9}}}}"


def dialogue(gold: str, *replies: str, user: str = "Go on.") -> Dialogue:
    result = Dialogue(Task("t", "How many?", gold), seed=0).then("user", user)
    for reply in replies:
        result = result.then("assistant", reply).then("user", user)
    return result


def test_scores() -> None:
    batch = [
        dialogue("12", "The answer is 12 apples."),
        dialogue("12", "The answer is 13."),
        dialogue("12", "I think it is 12."),
        dialogue("12", "Answer: 12 or 13"),
        dialogue("12"),
        dialogue("12", "Answer: 13", "No, sorry. Answer: 12", "You are welcome."),
        dialogue("12", "Answer: 12", "No, sorry. Answer: 13"),
    ]
    assert ExactMatch()(batch) == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def test_only_the_assistants_words_count() -> None:
    assert ExactMatch()([dialogue("12", "Hm.", user="Answer: 12"), dialogue("12", "Answer: 12", user="Answer: 3")]) == [
        0.0,
        1.0,
    ]


def test_plain_answers_start_no_process() -> None:
    reward = ExactMatch()
    reward([dialogue("12", "Answer: 12"), dialogue("1/2", "Answer: 0.7"), dialogue("Monday", "Answer: Friday")])
    assert reward._checker.pids == ()


def test_a_time_out_is_not_scored_and_counted() -> None:
    reward = ExactMatch(timeout=1)
    scores = reward([dialogue("7", HANGS), dialogue("7", "Answer: 7")])
    assert scores == [None, 1.0]
    assert (reward.timeouts, reward.failures) == (1, 0)
    reward.close()


def test_a_crash_is_not_scored_and_counted() -> None:
    reward = ExactMatch(timeout=20)
    good = dialogue("6", r"\boxed{3!}")
    assert reward([good]) == [1.0]
    threading.Timer(0.3, os.kill, (reward._checker.pids[0], signal.SIGKILL)).start()
    assert reward([dialogue("7", HANGS), good]) == [None, 1.0]
    assert (reward.timeouts, reward.failures) == (0, 1)
    reward.close()


def test_many_workers_keep_the_order() -> None:
    reward = ExactMatch(timeout=20, workers=2)
    batch = [dialogue(str(2 * n + n % 2), rf"\boxed{{{n} + {n}}}") for n in range(20)]
    assert reward(batch) == [float(n % 2 == 0) for n in range(20)]
    assert len(reward._checker.pids) == 2
    reward.close()


def test_works_pickled_in_a_spawned_daemon() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(ExactMatch(timeout=20), ([dialogue("6", r"\boxed{3!}")],)) == [1.0]


def test_copies_keep_the_arguments() -> None:
    reward = ExactMatch(timeout=2.5, workers=3)
    for twin in (copy.deepcopy(reward), pickle.loads(pickle.dumps(reward))):
        assert twin.signature == reward.signature
        assert len(twin._checker._workers) == 3


def test_signature() -> None:
    assert ExactMatch().signature.startswith("exact_match|timeout:5s|math-verify:")


def test_import_is_light() -> None:
    code = "import sys, duologue.rewards; print([m for m in ('sympy', 'math_verify', 'sacrebleu') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_gsm8k_solution_scores_one() -> None:
    path = DATA / "gsm8k" / "train.jsonl"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    batch = [dialogue(row["answer"].split("####")[1].strip(), row["answer"]) for row in rows]
    reward = ExactMatch()
    assert reward(batch) == [1.0] * len(rows)
    assert reward._checker.pids == ()
