"""``duologue calibrate`` and ``duologue train calibrated``."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from duologue.cli.flags import configured
from duologue.cli.train import say_where
from duologue.trainers.calibration_config import CalibrateConfig, CalibratedConfig


def add_calibration(app: typer.Typer, train: typer.Typer) -> None:
    """Add the commands to the program and to its group ``train``."""
    app.command("calibrate", epilog=_CALIBRATE)(configured(CalibrateConfig)(calibrate_command))
    train.command("calibrated", epilog=_TRAIN)(configured(CalibratedConfig)(train_calibrated_command))


_CALIBRATE = """\b
Examples:
  duologue calibrate MathChat-v0 --dialogues people.jsonl --output runs/user
  duologue calibrate MathChat-v0 --dialogues train.jsonl --held-out test.jsonl --model default --epochs 3
  duologue evaluate MathChat-v0 --agent default --simulator calibrated:runs/user
"""
_TRAIN = """\b
Examples:
  duologue train calibrated MathChat-v0 --simulator calibrated:runs/user --steps 100
  duologue train calibrated MathChat-v0 --dialogues people.jsonl --calibration epochs=3 --output runs/calibrated
"""


def calibrate_command(config: CalibrateConfig) -> None:
    """Fit a user to what people wrote, and measure it on dialogues that it has not seen.

    The result is a folder for --simulator calibrated:FOLDER.
    """
    from duologue.trainers.calibration import calibrate

    _show(calibrate(config, on_phase=_say))


def train_calibrated_command(config: CalibratedConfig) -> None:
    """Train by interactive GRPO against a user that was fitted to people and stays as it is.

    With --dialogues the user is calibrated first. Stop it at any time; the same command goes on.
    """
    from duologue.trainers.calibrated import train_calibrated

    say_where(train_calibrated(config, on_phase=_say))


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _show(folder: Path) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from duologue.trainers.calibration_card import nll_table, shown

    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    count = metrics["held_out"]["dialogues"]
    title = f"Nats on {count} held-out dialogues (95 % intervals); reference: unigram, constant rate"
    table = Table("", "before", "after", "reference", title=title, title_justify="left", box=SIMPLE)
    for row in nll_table(metrics, digits=2):
        table.add_row(*row)
    Console().print(table, f"Change of NLL per token: {shown(metrics['change'])}", markup=False)
    typer.echo(f"The user is in {folder}. Use it with --simulator calibrated:{folder}")
