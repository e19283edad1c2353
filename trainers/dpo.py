"""Offline DPO on pairs of replies to logged histories, in the manner of CollabLLM (arXiv:2502.00640).

Forward sampling says which of two replies the rest of the dialogue rewards more; DPO then moves the policy, without
playing any more. What is ours: the environment's terminal reward alone says what a dialogue earned. There is no
language model as a judge and no penalty for length, and dialogues are played on to their end, not for a few turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import PartialState
from datasets import Dataset
from transformers import PrinterCallback
from trl import DPOConfig, DPOTrainer

from duologue.disk import explains_full_disk
from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model, without_bars
from duologue.trainers.adapters import lora_config
from duologue.trainers.dpo_config import DpoConfig
from duologue.trainers.dpo_pairs import NothingToPreferError, OnProgress, value_replies, write_pairs
from duologue.trainers.preference_pairs import PreferencePair
from duologue.trainers.processes import refuse_processes
from duologue.trainers.progress import MetricsLog, ProgressLine, quiet_console
from duologue.trainers.run_folder import written_aside
from duologue.trainers.static import MakeContextEnv, read_contexts
from duologue.trainers.trl_config import everywhere

__all__ = ["DpoConfig", "NothingToPreferError", "fit_pairs", "keep_policy", "pair_rows", "train_dpo"]


@explains_full_disk("run the same command: replies that were valued are kept, and training begins again.")
def train_dpo(
    config: DpoConfig,
    *,
    make_env: MakeContextEnv | None = None,
    loaded: LoadedModel | None = None,
    on_progress: OnProgress | None = None,
    on_phase: Callable[[str], None] | None = None,
) -> Path:
    """Make preference pairs, train on them, and save the policy.

    Called again on its folder it values only the replies that are missing, and trains anew.

    Args:
        config: everything that is not an object.
        make_env: makes the environment; the default follows the configuration.
        loaded: a model in memory, which is trained; the default loads ``config.model``.
        on_progress: follows the histories.
        on_phase: called with a sentence about the pairs before training.

    Returns:
        The folder of the trained policy, which ``load_model`` and ``duologue evaluate --agent`` take.

    Raises:
        DuologueError: if logs cannot be used or leave no room for a reply, the folder holds other replies, nothing
            could be scored, there is no pair (``NothingToPreferError``), or several processes were launched.
    """
    refuse_processes("DPO", "Run it without accelerate launch.")
    contexts = read_contexts(config)
    loaded = loaded or load_model(config.model, dtype=config.dtype)
    valued = value_replies(config, contexts, loaded, make_env=make_env, on_progress=on_progress)
    pairs, counts = write_pairs(Path(config.output), valued)
    if on_phase:
        on_phase(f"{counts} Training on the pairs.")
    return fit_pairs(config, pairs, loaded)


def fit_pairs(config: DpoConfig, pairs: Sequence[PreferencePair], loaded: LoadedModel) -> Path:
    """Train on pairs with TRL, and save weights (or the adapter) and tokenizer in ``final`` in the output folder.

    The reference is the policy as it is before; its log-probabilities are computed first, so that it needs no memory.
    """
    output, steps = Path(config.output), dpo_steps(config, len(pairs))
    metrics = MetricsLog(output / "metrics.jsonl")
    metrics.path.unlink(missing_ok=True)
    fresh_adapter = config.lora_rank > 0 and not hasattr(loaded.model, "peft_config")
    with quiet_console():
        trainer: Any = _TokenDPOTrainer(
            model=loaded.model,
            args=_trl_config(config, steps),
            train_dataset=Dataset.from_list(pair_rows(pairs, ChatFormat(loaded.tokenizer, config.system_prompt))),
            processing_class=loaded.tokenizer,
            peft_config=lora_config(config, loaded.model) if fresh_adapter else None,
            callbacks=[metrics, ProgressLine(steps)],
        )
        trainer.remove_callback(PrinterCallback)
        if "ref" in getattr(trainer.model, "peft_config", {}):  # a copy of the adapter that training goes on with
            trainer.model.delete_adapter("ref")
        trainer.train()
    with without_bars(), written_aside(output, "final", trainer.accelerator) as final:
        trainer.save_model(str(final))
        loaded.tokenizer.save_pretrained(str(final))
        (final / "training_args.bin").unlink(missing_ok=True)  # a pickle of this machine's paths
    return output / "final"


def keep_policy(config: DpoConfig, loaded: LoadedModel | None = None) -> Path:
    """Save the policy as it is in ``final`` in the output folder: what DPO comes to without any pair."""
    loaded, output = loaded or load_model(config.model, dtype=config.dtype), Path(config.output)
    with without_bars(), written_aside(output, "final", PartialState()) as final:
        for part in (loaded.model, loaded.tokenizer):
            part.save_pretrained(str(final))
    return output / "final"


def dpo_steps(config: DpoConfig, pairs: int) -> int:
    """Return the optimiser steps of training on so many pairs."""
    return max(1, round(config.epochs * pairs / config.batch_size))


def pair_rows(pairs: Sequence[PreferencePair], chat: ChatFormat) -> list[dict[str, list[int]]]:
    """Return pairs as tokens: what the policy read and what it sampled, never rendered again and never cut."""
    return [
        {
            "prompt_ids": chat.opening_ids(pair.prompt),
            "chosen_ids": list(pair.chosen.token_ids),
            "rejected_ids": list(pair.rejected.token_ids),
        }
        for pair in pairs
    ]


class _TokenDPOTrainer(DPOTrainer):  # type: ignore[misc]
    """TRL's trainer on rows that are tokens already, without its bar."""

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset

    def _precompute_ref_logps(self, dataset: Dataset, *arguments: Any) -> Any:
        with _without_tqdm():
            return super()._precompute_ref_logps(dataset, *arguments)


@contextmanager
def _without_tqdm() -> Iterator[None]:
    """Set, for a block, the only thing that TRL asks before it shows the bar."""
    before = os.environ.get("TQDM_DISABLE")
    os.environ["TQDM_DISABLE"] = "1"
    try:
        yield
    finally:
        os.environ.pop("TQDM_DISABLE")
        if before is not None:
            os.environ["TQDM_DISABLE"] = before


def _trl_config(config: DpoConfig, steps: int) -> DPOConfig:
    return DPOConfig(
        output_dir=config.output,
        max_steps=steps,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        beta=config.beta,
        max_length=None,
        precompute_ref_log_probs=True,
        seed=config.seed,
        save_strategy="no",
        report_to="none",
        **everywhere(),
    )
