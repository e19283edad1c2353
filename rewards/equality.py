"""Whether two answers are the same: quickly where that decides, else part by part with computer algebra."""

from functools import lru_cache

from duologue.rewards.math_checker import MathChecker, WorkerFailedError, WorkerTimeoutError
from duologue.rewards.notation import plain
from duologue.rewards.quantities import drop_left_side, quick_equal_plain

_CACHE_SIZE = 4096


def _tuple_parts(text: str) -> tuple[str, str, list[str]] | None:
    """Split ``(a, b)`` or ``[a, b)`` into its brackets and parts at the top level; None if it is no such thing."""
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]":
        return None
    parts, depth = [""], 0
    for char in text[1:-1]:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return None
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return (text[0], text[-1], [part.strip() for part in parts]) if len(parts) > 1 else None


def compare(given: str, gold: str, checker: MathChecker) -> bool:
    """Return whether two answers, as written, are the same.

    Tuples, points and intervals are compared part by part, in order, with their brackets.

    Raises:
        WorkerTimeoutError: if computer algebra took longer than the checker allows.
        WorkerFailedError: if it failed.
    """
    given, gold = plain(given), plain(gold)
    quick = quick_equal_plain(given, gold)
    if quick is not None:
        return quick
    given, gold = drop_left_side(given, gold)
    ours, theirs = _tuple_parts(given), _tuple_parts(gold)
    if ours and theirs:
        pairs = zip(ours[2], theirs[2], strict=False)
        same_shape = ours[:2] == theirs[:2] and len(ours[2]) == len(theirs[2])
        return same_shape and all(compare(one, other, checker) for one, other in pairs)
    return checker.equal(given.replace("§", ""), gold.replace("§", ""))


@lru_cache(maxsize=1)
def _shared_checker() -> MathChecker:
    """Return the checker that all simulators of this process share."""
    return MathChecker()


@lru_cache(maxsize=_CACHE_SIZE)
def answers_equal(given: str, gold: str) -> bool | None:
    r"""Return whether two answers are the same, None if that could not be found out in 5 seconds. Remembers results.

    Args:
        given: the answer to judge, as written (``"12 apples"``, ``"\frac{1}{2}"``, ``"50%"``).
        gold: the reference, as written.
    """
    try:
        return compare(given, gold, _shared_checker())
    except (WorkerTimeoutError, WorkerFailedError):
        return None
