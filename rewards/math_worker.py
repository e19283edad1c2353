"""A process that compares answers by computer algebra: JSON lines in, JSON lines out. Run as a script, never imported.

It imposes no time-out of its own logic: sympy can hang in ways that no handler interrupts, so the parent kills it.
Should the parent die first, an alarm without handler ends it.
"""

import json
import logging
import sys
from collections.abc import Callable

_MEMORY_BYTES = 4 * 2**30
EXIT_NOT_INSTALLED = 3


def _limit_memory() -> None:
    """Let a monstrous expression fail here, not fill the machine."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    except (ImportError, ValueError, OSError):
        return


def _alarm(seconds: float) -> None:
    """End this process after so many seconds, by the operating system; 0 disarms."""
    import signal

    # Windows has no alarm.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _load() -> Callable[[str, str], bool]:
    """Import math-verify and return its comparison of two LaTeX texts, without its signal-based time-outs."""
    from math_verify import LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)

    def equal(given: str, gold: str) -> bool:
        parsed = [parse(f"${text}$", [LatexExtractionConfig()], parsing_timeout=None) for text in (given, gold)]
        return bool(verify(parsed[1], parsed[0], timeout_seconds=None, raise_on_error=True))

    return equal


def main() -> None:
    """Say ready, then answer requests ``{"given", "gold", "seconds"}`` with ``{"equal"}`` or ``{"error"}``."""
    try:
        equal = _load()
    except ImportError:
        sys.exit(EXIT_NOT_INSTALLED)
    _limit_memory()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        _alarm(request["seconds"])
        try:
            reply: dict[str, bool | str] = {"equal": equal(request["given"], request["gold"])}
        except Exception as error:
            reply = {"error": type(error).__name__}
        _alarm(0)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
