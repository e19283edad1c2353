"""Processes of one run that die: ``kill_worker.py SETTINGS.json`` (see ``test_kill.py``).

Each is a child of this one, which has only loaded the libraries. It ends by SIGKILL, from within and at a chosen place:
nothing is cleaned up, as when the kernel or a scheduler ends a process.
"""

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from duologue.engines.hf import TransformersEngine
from duologue.engines.sglang import SGLangEngine
from duologue.trainers import run_folder
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.episode_log import JsonLines
from duologue.trainers.interactive import InteractiveTrainer


def die(*_: Any, **__: Any) -> Any:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(owner: Any, name: str, number: int, instead: Callable[..., Any] = die) -> None:
    """Replace one call of a function, counted from 1."""
    original, calls = getattr(owner, name), [0]

    def counted(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        return (instead if calls[0] == number else original)(*args, **options)

    setattr(owner, name, counted)


def half_a_row(log: JsonLines, rows: Any) -> None:
    """Append all rows but the end of the last, then die."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    with log.path.open("a", encoding="utf-8") as file:
        file.write(text[:-20])
    die()


def half_a_file(_: Any, path: Any, *__: Any, **___: Any) -> None:
    """Begin a file of a checkpoint, then die."""
    Path(path).write_bytes(b"PK\x03\x04 and no more")
    die()


PLACES: dict[str, Callable[[], None]] = {
    "in the log": lambda: at_call(JsonLines, "append", 3, half_a_row),  # the dialogues of the second step
    "while dialogues are played": lambda: at_call(TransformersEngine, "generate", 8),
    "while a server samples": lambda: at_call(SGLangEngine, "generate", 5),
    "in the optimiser": lambda: at_call(torch.optim.AdamW, "step", 1),
    "in a checkpoint": lambda: at_call(torch, "save", 2, half_a_file),
    "before a checkpoint is moved": lambda: at_call(run_folder, "_settle", 1),
    "in the metrics": lambda: at_call(JsonLines, "append", 2, half_a_row),
    "before the policy is moved": lambda: at_call(run_folder, "_settle", 2),
}
"""Where processes die, by name."""


def world() -> Any:
    """The tiny world of the neighbouring tests."""
    spec = importlib.util.spec_from_file_location("tiny_world", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(settings: dict[str, Any], place: str | None, tiny: Any) -> None:
    """Train, or die on the way."""
    torch.set_num_threads(1)
    made = InteractiveTrainer(InteractiveConfig(**settings), make_env=lambda slots: tiny.make_env(slots, tiny.graded))
    if place:
        PLACES[place]()
    made.train()


def main(settings: dict[str, Any]) -> list[int]:
    """Call again and again what dies each time, elsewhere; return what each process left as its exit code."""
    tiny, codes = world(), []
    for place in [*settings.pop("places"), None]:
        child = os.fork()
        if not child:
            try:
                train(settings, place, tiny)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0 if sys.exc_info()[0] is None else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return codes


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
