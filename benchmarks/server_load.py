"""``python -m benchmarks.server_load URL``: many dialogues at a time with a SGLang server, for ten minutes.

Looks for what grows: open files and memory of this process. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from duologue.engines import RowsError, Sampling, SGLangEngine

_TURN_TOKENS = 16
_USER_TOKENS = 8
_FIRST_TOKEN = 3
"""Prompts are random ids from here on, under 256, which every vocabulary has."""


def main() -> None:
    """Run and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server_load", description=__doc__)
    parser.add_argument("url", help="address of the server, such as http://127.0.0.1:30000")
    parser.add_argument("--dialogues", type=int, default=256, help="dialogues at a time")
    parser.add_argument("--seconds", type=float, default=600, help="how long")
    parser.add_argument("--vocabulary", type=int, default=256, help="prompts are drawn from so many token ids")
    options = parser.parse_args()
    print(json.dumps(run_load(options.url, options.dialogues, options.seconds, options.vocabulary), indent=2))


def run_load(url: str, dialogues: int, seconds: float, vocabulary: int = 256) -> dict[str, Any]:
    """Play dialogues until the time is over and return counts, with open files and memory at three points of time."""
    engine = SGLangEngine(url, concurrency=dialogues)
    draw = np.random.default_rng(0)
    rows = [_opening(draw, vocabulary) for _ in range(dialogues)]
    states, failed, started = [_state()], 0, time.monotonic()
    while time.monotonic() - started < seconds:
        rows, lost = _turn(engine, rows, draw, vocabulary)
        failed += lost
        if len(states) == 1 and time.monotonic() - started > seconds / 4:
            states.append(_state())  # what it needs is there by now
    stats = {name: getattr(engine.stats, name) for name in engine.stats.__slots__}
    states.append(_state())
    return {
        "seconds": time.monotonic() - started,
        "failed": failed,
        "retried": engine.retried,
        **stats,
        "state": states,
    }


def _opening(draw: np.random.Generator, vocabulary: int) -> list[int]:
    return [int(token) for token in draw.integers(_FIRST_TOKEN, vocabulary, size=_USER_TOKENS)]


def _turn(
    engine: SGLangEngine, rows: list[list[int]], draw: np.random.Generator, vocabulary: int
) -> tuple[list[list[int]], int]:
    seeds = [int(seed) for seed in draw.integers(2**31, size=len(rows))]
    try:
        found: list[Any] = list(engine.generate(rows, Sampling(_TURN_TOKENS), [1, 2], seeds))
    except RowsError as error:
        found = error.rows
    longest = engine.context_length - 2 * _TURN_TOKENS - _USER_TOKENS
    after, lost = [], 0
    for row, done in zip(rows, found, strict=True):
        lost += isinstance(done, Exception)
        goes_on = not isinstance(done, Exception) and len(row) < longest
        after.append([*(row + list(done.token_ids) if goes_on else []), *_opening(draw, vocabulary)])
    return after, lost


def _state() -> dict[str, int]:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    return {"open_files": len(os.listdir("/proc/self/fd")), "memory_kib": int(found[1]) if found else 0}


if __name__ == "__main__":
    main()
