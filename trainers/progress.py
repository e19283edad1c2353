"""What a person sees while training runs, and the file that curves are drawn from."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers import TrainerCallback

from duologue.trainers.episode_log import JsonLines


class MetricsLog(TrainerCallback, JsonLines):
    """Writes each optimiser step's numbers as one JSON line."""

    def __init__(self, path: Path) -> None:
        JsonLines.__init__(self, path)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Append what TRL logged for this step; what JSON has no number for (NaN, infinity) becomes null."""
        if logs and "loss" in logs and state.is_world_process_zero:
            numbers = {name: value if _is_json(value) else None for name, value in logs.items()}
            self.append([{"step": state.global_step, **numbers}])


class ProgressLine(TrainerCallback):
    """Prints one line per optimiser step, in words that a person can follow."""

    def __init__(self, steps: int, console: Console | None = None) -> None:
        self.steps = steps
        self.console = console or Console(stderr=True)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Print the step's numbers that a person wants to see."""
        if logs and "loss" in logs and state.is_world_process_zero:
            numbers = "".join(_shown(label, form, logs.get(name)) for name, label, form in _COLUMNS if name in logs)
            self.console.print(f"step {state.global_step:>4}/{self.steps}{numbers}", highlight=False, soft_wrap=True)


_COLUMNS = (
    ("reward", "reward", "6.3f"),
    ("dialogue/turns", "turns", "4.1f"),
    ("dialogue/flat_groups", "flat groups", "4.0%"),
    ("dialogue/unscored", "unscored", "4.0%"),
    ("mean_token_accuracy", "token accuracy", "4.0%"),
    ("loss", "loss", "8.4f"),
    ("step_time", "seconds", "6.1f"),
)


def _is_json(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _shown(label: str, form: str, value: Any) -> str:
    return f"  {label} " + ("none" if value is None else format(float(value), form))


@contextmanager
def quiet_console() -> Iterator[None]:
    """Silence, for a block, what transformers and datasets show and the deprecations that only TRL can mend."""
    import datasets
    import transformers

    level, bars = transformers.logging.get_verbosity(), datasets.is_progress_bar_enabled()
    transformers.logging.set_verbosity(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*gradient_checkpointing.*", category=FutureWarning)
            yield
    finally:
        transformers.logging.set_verbosity(level)
        if bars:
            datasets.enable_progress_bars()
