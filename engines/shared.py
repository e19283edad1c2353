"""One base model in memory for several users of it: a second tree of modules over the same weight tensors.

A policy with a LoRA adapter leaves its base as it was, so a user that was calibrated on the same base needs no second
copy. What is shared are the parameters themselves; adapters, hooks and modes belong to each tree alone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SAMPLED = 16
"""Values per parameter that are looked at to see whether weights have changed since they were loaded."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a model's weights came from and what they were then."""

    name: str
    dtype: str
    values: list[list[float]]


_BASES: WeakKeyDictionary[Any, _Origin] = WeakKeyDictionary()


def remember(model: PreTrainedModel, name: str, dtype: str) -> None:
    """Note that a base model is in memory, for as long as somebody else holds it.

    Args:
        model: without adapter, on its device, as it was loaded.
        name: folder or Hugging Face id that it was loaded from.
        dtype: of its weights.
    """
    _BASES[model] = _Origin(_resolved(name), dtype, _fingerprint(model))


def frozen_base(name: str, dtype: str | None, device: str) -> tuple[PreTrainedModel, str] | None:
    """Return the newest base in memory that may be shared, with its dtype; None if there is none.

    Only a frozen base is shared: no weight requires a gradient (so it carries an adapter), and none has changed since
    it was loaded.

    Args:
        name: folder or Hugging Face id.
        dtype: of the weights; None = any.
        device: where they must be.
    """
    for model, origin in reversed(list(_BASES.items())):  # an older one may be about to go
        fits = origin.name == _resolved(name) and dtype in (None, origin.dtype) and _is_on(model, device)
        if fits and _is_frozen(model) and _fingerprint(model) == origin.values:
            return model, origin.dtype
    return None


def second_tree(model: PreTrainedModel) -> PreTrainedModel:
    """Return new modules over the parameters and buffers of a base model, without any adapter that was put into it.

    Raises:
        RuntimeError: if the model has weights that its own class does not account for.
    """
    with torch.device("meta"):
        tree: Any = type(model)(copy.deepcopy(model.config))
    tensors = base_tensors(model)
    for module_name, module in tree.named_modules():
        for held in (module._parameters, module._buffers):
            for leaf in [leaf for leaf, tensor in held.items() if tensor is not None]:
                held[leaf] = tensors.get(f"{module_name}.{leaf}" if module_name else leaf, held[leaf])
    _lend_attributes(model, tree)
    lost = [name for name, tensor in (*tree.named_parameters(), *tree.named_buffers()) if tensor.is_meta]
    if lost:
        raise RuntimeError(f"{type(model).__name__} keeps {lost[0]} elsewhere, so its weights cannot be shared.")
    tree.generation_config = copy.deepcopy(model.generation_config)
    return tree.eval()  # type: ignore[no-any-return]


def _lend_attributes(model: PreTrainedModel, tree: Any) -> None:
    """Give the tree what modules keep as plain attributes, such as frequencies of rotary embeddings."""
    sources = {name.replace(".base_layer", ""): module for name, module in model.named_modules()}
    for name, module in tree.named_modules():
        for key, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.is_meta:
                setattr(module, key, getattr(sources[name], key))


def base_tensors(model: PreTrainedModel) -> dict[str, Any]:
    """Return parameters and buffers under the names they had before an adapter was put in; the adapter's are left out.

    Tied weights appear under each of their names.
    """
    parameters = model.named_parameters(remove_duplicate=False)
    found = [*parameters, *model.named_buffers(remove_duplicate=False)]
    return {name.replace(".base_layer.", "."): tensor for name, tensor in found if ".lora_" not in name}


def _resolved(name: str) -> str:
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def _is_on(model: PreTrainedModel, device: str) -> bool:
    wanted, found = torch.device(device), model.device
    return wanted.type == found.type and wanted.index in (None, found.index)


def _is_frozen(model: PreTrainedModel) -> bool:
    return not any(t.requires_grad for t in base_tensors(model).values())


def _fingerprint(model: PreTrainedModel) -> list[list[float]]:
    """Return a few values of each weight. Torch's own versions miss fused optimisers and writes through ``.data``."""
    weights = (t for t in base_tensors(model).values() if isinstance(t, torch.nn.Parameter))
    return [t.detach().reshape(-1)[:_SAMPLED].tolist() for t in weights]
