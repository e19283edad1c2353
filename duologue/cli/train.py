"""The commands ``duologue train …``: interactive, static, dpo and clone. ``calibrated`` comes from ``calibrate.py``."""

from __future__ import annotations

from pathlib import Path

import typer

from duologue.cli.flags import configured
from duologue.cli.progress import progress_line
from duologue.trainers.cloning_config import CloningConfig
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.dpo_config import DpoConfig
from duologue.trainers.static_config import StaticConfig

train = typer.Typer(help="Train a policy.", no_args_is_help=True, rich_markup_mode=None)

_INTERACTIVE = """\b
Examples:
  duologue train interactive MathChat-v0 --steps 100 --output runs/interactive
  duologue train interactive --config train.yaml --learning-rate 1e-5 --trl optim=adamw_torch
"""
_STATIC = """\b
Examples:
  duologue train static MathChat-v0 --dialogues logs.jsonl --output runs/static
  duologue train static MathChat-v0 --dialogues logs.jsonl --turns final --held-out test.jsonl
  duologue evaluate MathChat-v0 --agent runs/static/final --output runs/after
"""
_DPO = """\b
Examples:
  duologue train dpo MathChat-v0 --dialogues logs.jsonl --output runs/dpo
  duologue train dpo MathChat-v0 --dialogues logs.jsonl --max-contexts 200 --replies 4 --continuations 3
  duologue evaluate MathChat-v0 --agent runs/dpo/final --output runs/after
"""
_CLONE = """\b
Examples:
  duologue train clone --dialogues logs.jsonl --output runs/clone
  duologue train static MathChat-v0 --dialogues logs.jsonl --model runs/clone
"""


@train.command("interactive", epilog=_INTERACTIVE)
@configured(InteractiveConfig)
def train_interactive_command(config: InteractiveConfig) -> None:
    """Train by interactive GRPO: whole on-policy dialogues with a simulated user.

    Stop it at any time; the same command goes on from the last checkpoint.
    """
    from duologue.trainers import InteractiveTrainer

    say_where(InteractiveTrainer(config).train())


@train.command("static", epilog=_STATIC)
@configured(StaticConfig)
def train_static_command(config: StaticConfig) -> None:
    """Train by static-context GRPO: one reply to histories of logged dialogues, and no user.

    Stop it at any time; the same command goes on from the last checkpoint.
    """
    from duologue.trainers import StaticTrainer

    say_where(StaticTrainer(config).train())


@train.command("dpo", epilog=_DPO)
@configured(DpoConfig)
def train_dpo_command(config: DpoConfig) -> None:
    """Train by offline DPO: pairs of replies to logged histories, valued by the dialogues that follow them.

    Stop it at any time; the same command goes on from the replies that were valued.
    """
    from duologue import trainers

    def say(sentence: str) -> None:
        typer.echo(sentence, err=True)

    with progress_line("histories", "value") as show:
        policy = trainers.train_dpo(config, on_progress=show, on_phase=say)
    say_where(policy)


@train.command("clone", epilog=_CLONE)
@configured(CloningConfig)
def train_clone_command(config: CloningConfig) -> None:
    """Train by behaviour cloning: imitate the assistant of logged dialogues."""
    from duologue.trainers import cloning

    typer.echo(f"The trained policy is in {cloning.clone(config)}")


def say_where(policy: Path) -> None:
    """Say, once for all processes of a run, where the trained policy is."""
    from duologue.trainers.processes import process_index

    if process_index() == 0:
        typer.echo(f"The trained policy is in {policy}")
