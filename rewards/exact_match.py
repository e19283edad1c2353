"""Exact match: is the assistant's last committed final answer the reference answer?"""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from duologue.rewards.answers import extract_answer
from duologue.rewards.equality import answers_equal, compare
from duologue.rewards.math_checker import MathChecker, WorkerFailedError, WorkerTimeoutError
from duologue.types import Dialogue

__all__ = ["ExactMatch", "answers_equal"]


class ExactMatch:
    """Scores 1.0 if the last committed final answer equals ``task.reference``, else 0.0; docs/rewards.md has the rules.

    A missing or ambiguous answer is 0.0. Where the comparison hangs or crashes the score is None (not scored), and
    counted in ``timeouts`` or ``failures``.

    Args:
        timeout: seconds for one comparison by computer algebra; plain numbers never need it.
        workers: processes that compare at once.

    Raises:
        DuologueError: if an argument is not positive; on a call, if math-verify is not installed.
    """

    def __init__(self, timeout: float = 5.0, workers: int = 1) -> None:
        self._checker = MathChecker(timeout, workers)
        self._workers = workers
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, dialogues: Sequence[Dialogue], /) -> list[float | None]:
        """Return 1.0, 0.0 or None per dialogue, in order."""
        if self._workers == 1:
            return [self._score(dialogue) for dialogue in dialogues]
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._score, dialogues))

    def __reduce__(self) -> tuple[type["ExactMatch"], tuple[float, int]]:
        """Copy and pickle the arguments alone: processes stay where they are."""
        return ExactMatch, (self._checker.timeout, self._workers)

    @property
    def signature(self) -> str:
        """Return the reward's name, time-out and the version of math-verify."""
        from importlib.metadata import version

        return f"exact_match|timeout:{self._checker.timeout:g}s|math-verify:{version('math-verify')}"

    @property
    def timeouts(self) -> int:
        """Return how many comparisons took too long so far."""
        return self._counts["timeouts"]

    @property
    def failures(self) -> int:
        """Return how many comparisons crashed so far."""
        return self._counts["failures"]

    def close(self) -> None:
        """Kill the worker processes; the next call that needs one starts it again."""
        self._checker.close()

    def _score(self, dialogue: Dialogue) -> float | None:
        """Score one dialogue."""
        answer = extract_answer(dialogue.said_by("assistant")).text
        if answer is None:
            return 0.0
        try:
            return float(compare(answer, dialogue.task.reference, self._checker))
        except WorkerTimeoutError:
            self._count("timeouts")
        except WorkerFailedError:
            self._count("failures")
        return None

    def _count(self, what: str) -> None:
        """Count a dialogue that was not scored; several threads may."""
        with self._lock:
            self._counts[what] += 1
