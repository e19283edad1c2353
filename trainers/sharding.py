"""Whole weights while dialogues are played, where training shards them over processes.

With data parallelism every process holds all weights, and generation is its own affair. FSDP and ZeRO-3 fetch weights
from the other processes in every forward call, so processes that generate different numbers of tokens would wait for
each other for ever. Here the weights are fetched once, before the dialogues; then generation is nobody else's affair
there, too. It costs the memory of one copy of the weights per process during play.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from duologue.errors import DuologueError


def sharded() -> bool:
    """Return True if the launcher asks for FSDP or DeepSpeed."""
    return any(os.environ.get(f"ACCELERATE_USE_{name}", "").lower() in ("1", "true") for name in ("FSDP", "DEEPSPEED"))


def check_sharding(accelerator: Any) -> None:
    """Refuse what cannot be gathered for play.

    Raises:
        DuologueError: for FSDP of version 1, whose gathered weights cannot be used in a forward call.
    """
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin is not None and plugin.fsdp_version < 2:
        raise DuologueError("FSDP 1 cannot sample from gathered weights. Set fsdp_version: 2 in accelerate's file.")


@contextmanager
def whole_weights(trainer: Any) -> Iterator[None]:
    """Hold all weights on every process for a block; all processes must enter it and all must leave it.

    Args:
        trainer: TRL's trainer, prepared for training.
    """
    if getattr(trainer, "is_fsdp_enabled", False):
        with _fsdp_whole(trainer.model):
            yield
    elif getattr(trainer, "is_deepspeed_enabled", False):
        from trl.models.utils import unwrap_model_for_generation

        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator):
            yield
    else:
        yield


@contextmanager
def _fsdp_whole(model: Any) -> Iterator[None]:
    from torch.distributed.fsdp import FSDPModule

    parts = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for part in parts:
        part.unshard()
        part.set_reshard_after_forward(False, recurse=False)
    try:
        yield
    finally:
        for part in parts:
            part.reshard()
            part.set_reshard_after_forward(True, recurse=False)
