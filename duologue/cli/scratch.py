"""``duologue pretrain``: a small language model from scratch."""

from __future__ import annotations

import typer

from duologue.cli.progress import progress_line
from duologue.trainers.scratch import ScratchConfig, pretrain

EXAMPLES = (
    "duologue pretrain logs.jsonl --output runs/scratch",
    "duologue pretrain logs.jsonl --layers 4 --hidden 192 --heads 6 --epochs 10 --output runs/larger",
)


def run_pretrain(config: ScratchConfig) -> None:
    """Train a small language model and its tokenizer from scratch on logged dialogues, both speakers' words.

    For experiments that must be done in minutes. It knows nothing but the logs.
    """
    with progress_line("pretrain", "loss") as show:
        folder = pretrain(config, on_step=show)
    typer.echo(f"The model is in {folder}. Give it as --agent or --model.")
