"""Log-probabilities at the policy's own tokens only.

In a dialogue most positions are the user's, but TRL projects every position of the batch onto the vocabulary (on a
GPU: every completion position). The projection of a small model costs as much as a third of its layers.
"""

from __future__ import annotations

from typing import Any

import torch

Scores = tuple[torch.Tensor, torch.Tensor]
"""Log-probabilities and entropies in nats, each (B, C); 0 where the policy did not sample."""

_SCALED = ("final_logit_softcapping", "logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")


def can_gather(model: Any) -> bool:
    """Return True if logits are nothing but ``hidden @ head``: plain models on a CPU in one process.

    Elsewhere TRL's own kernel skips what is labelled -100, or wrappers must see the forward call.
    """
    config: Any = getattr(getattr(model, "config", None), "get_text_config", dict)()
    plain = all(getattr(config, name, None) is None for name in _SCALED)
    return plain and hasattr(model, "get_output_embeddings") and model.device.type == "cpu"


def gathered(
    model: Any, ids: torch.Tensor, attention: torch.Tensor, trained: torch.Tensor, temperature: float
) -> Scores:
    """Run the backbone once and the head on trained positions.

    Args:
        model: a causal language model, with or without a PEFT adapter, for which ``can_gather`` is True.
        ids: (B, P + C) prompt and completion.
        attention: (B, P + C).
        trained: (B, C), 1 where the policy sampled.
        temperature: of sampling.
    """
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = causal.base_model(input_ids=ids, attention_mask=attention, use_cache=False).last_hidden_state
    width, wanted = trained.shape[1], trained.bool()
    logits = causal.get_output_embeddings()(hidden[:, -width - 1 : -1][wanted]).float() / temperature
    logp = torch.log_softmax(logits, dim=-1)
    chosen = logp.gather(1, ids[:, -width:][wanted].unsqueeze(1)).squeeze(1)
    entropy = -(logp.detach().exp() * logp.detach()).sum(dim=-1)
    empty = chosen.new_zeros(trained.shape)
    return empty.masked_scatter(wanted, chosen), empty.masked_scatter(wanted, entropy)


def labelled(model: Any, ids: torch.Tensor, attention: torch.Tensor, trained: torch.Tensor) -> Scores:
    """Let TRL's fused head do the same, told by labels of -100 what to leave out."""
    width = trained.shape[1]
    labels = torch.full_like(ids, -100)
    labels[:, -width:] = ids[:, -width:].masked_fill(trained == 0, -100)
    out = model(input_ids=ids, attention_mask=attention, labels=labels, fused_lm_head=True)
    return out.log_probs[:, -width:], out.entropy[:, -width:]
