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
from typing import TYPE_CHECKING, Any

from duologue.errors import DuologueError

if TYPE_CHECKING:
    import torch


def sharded() -> bool:
    """Return True if the launcher asks for FSDP or DeepSpeed."""
    return any(os.environ.get(f"ACCELERATE_USE_{name}", "").lower() in ("1", "true") for name in ("FSDP", "DEEPSPEED"))


def check_sharding(accelerator: Any) -> None:
    """Refuse what cannot be gathered for play, or would not be when the policy is saved.

    Raises:
        DuologueError: for FSDP of version 1, whose gathered weights cannot be used in a forward call, and for settings
            with which ``save_model`` leaves out the weights, without a word.
    """
    fsdp = getattr(accelerator.state, "fsdp_plugin", None)
    if fsdp is not None and fsdp.fsdp_version < 2:
        raise DuologueError("FSDP 1 cannot sample from gathered weights. Set fsdp_version: 2 in accelerate's file.")
    if fsdp is not None and "FULL_STATE_DICT" not in str(fsdp.state_dict_type):
        raise DuologueError(
            "With FSDP's sharded state the trained policy would not be saved whole, and accelerate's own default is "
            "that. Set fsdp_state_dict_type: FULL_STATE_DICT in its file."
        )
    zero = getattr(accelerator.state, "deepspeed_plugin", None)
    if zero is not None and zero.zero_stage == 3 and not _gathers(zero.deepspeed_config):
        raise DuologueError(
            "ZeRO-3 would not save the trained policy whole. Set zero3_save_16bit_model: true in accelerate's file "
            "(stage3_gather_16bit_weights_on_model_save in DeepSpeed's)."
        )


def _gathers(config: dict[str, Any]) -> bool:
    return bool(config.get("zero_optimization", {}).get("stage3_gather_16bit_weights_on_model_save"))


@contextmanager
def whole_weights(trainer: Any) -> Iterator[None]:
    """Hold all weights on every process for a block; all processes must enter it and all must leave it.

    Args:
        trainer: TRL's trainer, prepared for training.
    """
    if getattr(trainer, "is_fsdp_enabled", False):
        with _fsdp_whole(trainer.model, trainer.accelerator.state.fsdp_plugin.reshard_after_forward):
            yield
    elif getattr(trainer, "is_deepspeed_enabled", False):
        from trl.models.utils import unwrap_model_for_generation

        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator):
            yield
    else:
        yield


def whole_state(trainer: Any) -> dict[str, torch.Tensor]:
    """Return all weights by name, each once; where they are sharded, all processes must call, and the first gets them.

    Args:
        trainer: TRL's trainer, prepared for training.
    """
    state: dict[str, torch.Tensor] = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    tied = getattr(trainer.accelerator.unwrap_model(trainer.model), "all_tied_weights_keys", None) or {}
    return {name: tensor for name, tensor in (state or {}).items() if name not in tied}


@contextmanager
def _fsdp_whole(model: Any, reshard: bool) -> Iterator[None]:
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
            part.set_reshard_after_forward(reshard, recurse=False)
