"""What a person sees while training runs, and the file that curves are drawn from."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers import PrinterCallback, TrainerCallback

from duologue.trainers.episode_log import JsonLines


class MetricsLog(TrainerCallback, JsonLines):  # type: ignore[misc]
    """Writes each optimiser step's numbers as one JSON line."""

    def __init__(self, path: Path) -> None:
        JsonLines.__init__(self, path)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Append what TRL logged for this step."""
        if logs and "loss" in logs and state.is_world_process_zero:
            self.append([{"step": state.global_step, **logs}])


class ProgressLine(TrainerCallback):  # type: ignore[misc]
    """Prints one line per optimiser step, in words that a person can follow."""

    def __init__(self, steps: int, console: Console | None = None) -> None:
        self.steps = steps
        self.console = console or Console(stderr=True)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Print the step's reward, turns, flat groups and time."""
        if not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        reward = logs.get("reward")
        shown = "  none" if reward is None else f"{float(reward):6.3f}"
        self.console.print(
            f"step {state.global_step:>4}/{self.steps}  reward [bold]{shown}[/bold]"
            f"  turns {float(logs.get('dialogue/turns', 0)):4.1f}"
            f"  flat groups {float(logs.get('dialogue/flat_groups', 0)):4.0%}"
            f"  unscored {float(logs.get('dialogue/unscored', 0)):4.0%}"
            f"  {float(logs.get('step_time', 0)):5.1f} s",
            highlight=False,
        )


@contextmanager
def quiet_console() -> Iterator[None]:
    """Silence what transformers prints beside the progress line, for the duration of a block."""
    import transformers

    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pin_memory.*")
            yield
    finally:
        transformers.logging.set_verbosity(level)


def without_printer(trainer: Any) -> None:
    """Take away the callback that prints raw dictionaries."""
    trainer.remove_callback(PrinterCallback)
    logging.getLogger("accelerate").setLevel(logging.ERROR)
