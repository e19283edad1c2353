"""Supervised training on rows of tokens of which some carry loss: what cloning and calibration share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from datasets import Dataset
from transformers import PrinterCallback
from trl import SFTConfig, SFTTrainer

from duologue.engines.models import LoadedModel
from duologue.trainers.adapters import AdapterFields, lora_config
from duologue.trainers.progress import ProgressLine, quiet_console
from duologue.trainers.trl_config import everywhere

Row = dict[str, list[int]]
"""``input_ids`` and ``completion_mask`` (1 = carries loss), of one length."""


class SupervisedFields(AdapterFields, Protocol):
    """The fields of a configuration that supervised training reads."""

    @property
    def output(self) -> str:
        """Folder for the result."""
        ...

    @property
    def epochs(self) -> float:
        """Passes over the rows."""
        ...

    @property
    def batch_size(self) -> int:
        """Rows per optimiser step."""
        ...

    @property
    def learning_rate(self) -> float:
        """Learning rate of AdamW."""
        ...

    @property
    def max_total_tokens(self) -> int:
        """Longest row; the caller has checked it."""
        ...

    @property
    def seed(self) -> int:
        """Seeds order and initialisation."""
        ...


def fit(config: SupervisedFields, rows: Sequence[Row], loaded: LoadedModel) -> Any:
    """Train on rows, save weights (or the adapter) and tokenizer in ``config.output``, and return the trained model."""
    fresh_adapter = config.lora_rank > 0 and not hasattr(loaded.model, "peft_config")
    steps = max(1, round(config.epochs * len(rows) / config.batch_size))
    with quiet_console():
        trainer: Any = SFTTrainer(
            model=loaded.model,
            args=_sft_config(config, steps),
            train_dataset=Dataset.from_list(list(rows)),
            processing_class=loaded.tokenizer,
            peft_config=lora_config(config, loaded.model) if fresh_adapter else None,
            callbacks=[ProgressLine(steps)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    trainer.save_model(config.output)
    loaded.tokenizer.save_pretrained(config.output)
    Path(config.output, "training_args.bin").unlink(missing_ok=True)  # a pickle of this machine's paths
    return trainer.accelerator.unwrap_model(trainer.model)


def _sft_config(config: SupervisedFields, steps: int) -> SFTConfig:
    return SFTConfig(
        output_dir=config.output,
        max_steps=steps,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        train_sampling_strategy="group_by_length",
        max_length=config.max_total_tokens,
        completion_only_loss=True,
        seed=config.seed,
        save_strategy="no",
        report_to="none",
        **everywhere(),
    )
