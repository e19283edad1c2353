"""The shape of a named model, without its weights: its configuration, built where tensors have no storage."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from duologue.analysis.plan.shape import Shape
from duologue.engines.models import DEFAULT_MODEL, default_model_folder
from duologue.errors import DuologueError
from duologue.trainers.adapters import AdapterFields, lora_config


def shape_of(model: str, adapter: AdapterFields) -> Shape:
    """Return a model's shape.

    Args:
        model: ``default``, a folder (with or without adapter), or a Hugging Face id.
        adapter: rank and layers of the adapters that will be trained.

    Raises:
        DuologueError: if there is no such model, or it is no causal language model.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    untyped: Any = AutoModelForCausalLM
    folder = str(default_model_folder()) if model == DEFAULT_MODEL else _base(model)
    try:
        config = AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            made = untyped.from_config(config)
    except (OSError, ValueError) as error:
        raise DuologueError(
            f"The shape of {model!r} cannot be read: {str(error).strip().splitlines()[0]} Give a folder with "
            "config.json, or the numbers by hand: --shape parameters=4.3e9 and the others."
        ) from error
    return _shape(made, adapter)


def _shape(model: Any, adapter: AdapterFields) -> Shape:
    config = model.config.get_text_config()
    parameters = sum(p.numel() for p in model.parameters())
    heads, hidden = int(config.num_attention_heads), int(config.hidden_size)
    return Shape(
        parameters=parameters,
        trained_parameters=_adapter_parameters(model, adapter) if adapter.lora_rank else parameters,
        layers=int(config.num_hidden_layers),
        hidden=hidden,
        kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
        head_size=int(getattr(config, "head_dim", None) or hidden // heads),
        vocabulary=int(config.vocab_size),
        inner=getattr(config, "intermediate_size", None),
    )


def _adapter_parameters(model: Any, adapter: AdapterFields) -> int:
    """Return rank (inputs + outputs), summed over the linear layers that have an adapter."""
    from peft import get_peft_model

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*gradient_checkpointing.*", category=FutureWarning)
        made = get_peft_model(model, lora_config(adapter, model))
    return sum(p.numel() for p in made.parameters() if p.requires_grad)


def _base(model: str) -> str:
    """Return the model, or the base that an adapter's folder names."""
    file = Path(model, "adapter_config.json")
    if not file.is_file():
        return model
    base = json.loads(file.read_text(encoding="utf-8")).get("base_model_name_or_path")
    if not base:
        raise DuologueError(f"The adapter {model!r} does not name its base model. Set it in adapter_config.json.")
    return str(base)
