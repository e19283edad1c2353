"""LoRA adapters for a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from duologue.errors import DuologueError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class AdapterFields(Protocol):
    """The fields of a configuration that describe an adapter."""

    @property
    def lora_rank(self) -> int:
        """Rank; 0 = no adapter."""
        ...

    @property
    def lora_top_layers(self) -> int | None:
        """Adapt the last so many layers only; None = all."""
        ...


def lora_config(config: AdapterFields, model: PreTrainedModel) -> Any:
    """Return a PEFT configuration: all linear layers, alpha = 2 * rank, no dropout (it would bias the ratio).

    Raises:
        DuologueError: if ``lora_top_layers`` is not between 1 and the model's number of layers.
    """
    from peft import LoraConfig

    depth = int(model.config.get_text_config().num_hidden_layers)
    top = config.lora_top_layers
    if top is not None and not 1 <= top <= depth:
        raise DuologueError(f"lora_top_layers is {top}, but the model has {depth} layers. Choose 1 to {depth}.")
    names = linear_names(model)
    return LoraConfig(
        r=config.lora_rank,
        lora_alpha=2 * config.lora_rank,
        lora_dropout=0.0,
        target_modules=names,
        layers_to_transform=list(range(depth - top, depth)) if top else None,
        task_type="CAUSAL_LM",
    )


def linear_names(model: PreTrainedModel) -> list[str]:
    """Return the names of the linear layers inside the transformer blocks (``q_proj``, ``down_proj``, …)."""
    import torch

    head: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    found = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and m is not head]
    return sorted({name.rpartition(".")[2] for name in found})
