"""Bytes: of weights, optimiser, activations, logits and keys and values. One formula a function."""

from __future__ import annotations

from dataclasses import dataclass, fields

from duologue.analysis.plan.shape import Shape

ADAPTER_WIDTH = 4
"""Bytes of an adapter's number: PEFT keeps adapters in float32 beside bfloat16 weights."""
ENGINE_ROWS = 64
"""Rows that the engine in this process runs at once (``TransformersEngine``)."""

TILE = (4096, 32768)
"""Positions and columns of the vocabulary that TRL's head on a GPU holds at once."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one GPU (or in the process), by what holds them."""

    weights: float
    gradients: float = 0.0
    optimiser: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    cache: float = 0.0
    user: float = 0.0

    @property
    def total(self) -> float:
        """Return the sum."""
        return float(sum(getattr(self, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Batch:
    """What one forward and backward pass holds."""

    tokens: float
    """All of it, padding included."""
    positions: float
    """Those of them that the policy sampled, which the head projects onto the vocabulary."""
    gpu: bool
    """On a GPU, training keeps a vector per layer and token and computes the rest again; the head works in tiles."""


def trained_bytes(shape: Shape, width: int) -> float:
    """Return the bytes of what is trained: N_trained times 4 for adapters, times the weights' width else."""
    return (ADAPTER_WIDTH if shape.adapters else width) * shape.trained_parameters


def weight_bytes(shape: Shape, width: int) -> float:
    """Return b N, and 4 N_trained for adapters beside it."""
    return width * shape.parameters + (trained_bytes(shape, width) if shape.adapters else 0)


def moment_bytes(shape: Shape, width: int) -> float:
    """Return the two moments of AdamW, each in the type of what is trained."""
    return 2 * trained_bytes(shape, width)


def layer_bytes(shape: Shape, width: int) -> float:
    """Return what one layer of a Llama keeps per token for the backward pass, with hidden h, inner i and kv heads k.

    Norms keep their input in float32, attention its four parts, the feed-forward layers four: 2 (4 h + 2 b h) +
    b (2 h + 2 k) + 4 b i. Frozen norms do not keep what their weights would need (2 b h less). Adapters in float32
    beside weights of another type keep a copy of each linear layer's input: 4 (6 h + i), and none in b (2 b h + b i).
    """
    h, k, inner = shape.hidden, shape.kv_heads * shape.head_size, shape.width_inside
    kept = 2 * norm_bytes(shape, width) + width * (2 * h + 2 * k + 4 * inner)
    if shape.adapters and width < ADAPTER_WIDTH:
        kept += ADAPTER_WIDTH * (6 * h + inner) - width * (2 * h + inner)
    return kept


def norm_bytes(shape: Shape, width: int) -> float:
    """Return what one norm keeps per token: 4 h + 2 b h, frozen 4 h + b h."""
    return (4 + (1 if shape.adapters else 2) * width) * shape.hidden


def activation_bytes(shape: Shape, batch: Batch, width: int) -> float:
    """Return tokens (layers layer_bytes + norm_bytes); with a GPU's checkpoints, layers b h + layer_bytes instead."""
    each = layer_bytes(shape, width)
    kept = shape.layers * shape.hidden * width + each if batch.gpu else shape.layers * each
    return batch.tokens * (kept + norm_bytes(shape, width))


def logit_bytes(shape: Shape, batch: Batch) -> float:
    """Return 2 times 4 positions vocabulary: logits and their log-softmax in float32; on a GPU at most one tile."""
    if batch.gpu:
        return 2 * 4 * min(batch.positions, TILE[0]) * min(shape.vocabulary, TILE[1])
    return 2 * 4 * batch.positions * shape.vocabulary


def cache_bytes(shape: Shape, tokens: float, width: int) -> float:
    """Return b 2 layers kv_heads head_size a token: keys and values."""
    return width * 2 * shape.layers * shape.kv_heads * shape.head_size * tokens


def kept_rows(dialogues: float) -> float:
    """Return how many rows of keys and values the engine in this process holds at most.

    Those of the turn before, those of this turn, and those of the batch that runs.
    """
    return 2 * dialogues + min(dialogues, ENGINE_ROWS)


def training_memory(shape: Shape, batch: Batch, width: int, *, shards: int, shard_weights: bool) -> Memory:
    """Return what the training side of one GPU holds.

    Args:
        shape: of the policy.
        batch: of one forward and backward pass.
        width: bytes of a weight.
        shards: GPUs over which gradients and moments (and weights) are cut, as FSDP does; 1 = each has them whole.
        shard_weights: cut the weights as well.
    """
    trained = trained_bytes(shape, width)
    return Memory(
        weights=weight_bytes(shape, width) / (shards if shard_weights else 1),
        gradients=trained / shards,
        optimiser=moment_bytes(shape, width) / shards,
        activations=activation_bytes(shape, batch, width),
        logits=logit_bytes(shape, batch),
    )
