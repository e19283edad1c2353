"""Correction of gradients for tokens that somewhat other weights sampled: an engine's rounding, or an older policy."""

from __future__ import annotations

import torch


def truncated_ratio(old: torch.Tensor, sampled: torch.Tensor, mask: torch.Tensor, cap: float) -> torch.Tensor:
    """Return min(exp(old - sampled), cap) token by token, (B, T); 1 where the policy did not sample.

    Every loss of TRL is homogeneous in the advantage, so advantages times this ratio are the loss with truncated
    importance sampling. By the token, because the ratio of a whole dialogue explodes with its length.

    Args:
        old: (B, T) log-probabilities under the weights that are trained, in nats.
        sampled: (B, T) those under which the tokens were sampled, as the engine gave them.
        mask: (B, T), 1 where the policy sampled.
        cap: most that a token may count, above 0.
    """
    ratio = torch.exp(torch.where(mask.bool(), old - sampled, torch.zeros_like(old)))
    return ratio.clamp(max=cap).where(mask.bool(), torch.ones_like(old)).detach()
