"""Operations, seconds and bytes on the network of one step."""

from __future__ import annotations

from dataclasses import dataclass, fields

from duologue.analysis.plan.lengths import Lengths
from duologue.analysis.plan.memory import trained_bytes
from duologue.analysis.plan.shape import Machine, Shape


def training_flops(shape: Shape, tokens: float, *, checkpoints: bool) -> float:
    """Return 6 N T; for adapters (4 N + 6 N_trained) T; with checkpoints 2 N T more for the second forward pass.

    Adapters need the gradients of what flows through frozen layers (2 N), not those of frozen weights.
    """
    n, trained = shape.parameters, shape.trained_parameters
    once = 4 * n + 6 * trained if shape.adapters else 6 * n
    return (once + (2 * n if checkpoints else 0)) * tokens


def forward_flops(parameters: float, tokens: float) -> float:
    """Return 2 N T: reading a prompt, or sampling token by token."""
    return 2 * parameters * tokens


@dataclass(frozen=True, slots=True)
class Flops:
    """Operations, by what they are for. Two kinds: in parallel over tokens, and token by token."""

    training: float
    prefill: float
    decode: float
    user_prefill: float
    user_decode: float

    def times(self, count: float) -> Flops:
        """Return the operations of so many steps."""
        return Flops(*(count * getattr(self, f.name) for f in fields(self)))

    def seconds(self, machine: Machine) -> Seconds:
        """Return seconds of one GPU (or of the CPU)."""
        fast = machine.tflops * 1e12 * machine.training_utilisation
        slow = machine.tflops * 1e12 * machine.generation_utilisation
        return Seconds(
            training=self.training / fast,
            prefill=self.prefill / fast,
            decode=self.decode / slow,
            user=self.user_prefill / fast + self.user_decode / slow,
        )


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of one GPU (or of the CPU), by what they go to."""

    training: float
    prefill: float
    decode: float
    user: float

    @property
    def rollout(self) -> float:
        """Return what playing the dialogues takes."""
        return self.prefill + self.decode + self.user

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.training + self.rollout


def talk_flops(shape: Shape, user: Shape | None, lengths: Lengths, dialogues: float) -> Flops:
    """Return the operations of playing dialogues, with the cache of each dialogue.

    Args:
        shape: of the policy.
        user: of the user's model; None = it costs nothing. It reads what the policy said and samples its own words.
        lengths: of one dialogue.
        dialogues: how many.
    """
    other = user.parameters if user else 0.0
    return Flops(
        training=0.0,
        prefill=forward_flops(shape.parameters, dialogues * lengths.prefill_cached),
        decode=forward_flops(shape.parameters, dialogues * lengths.sampled),
        user_prefill=forward_flops(other, dialogues * lengths.sampled),
        user_decode=forward_flops(other, dialogues * lengths.user),
    )


def step_flops(shape: Shape, user: Shape | None, lengths: Lengths, *, checkpoints: bool) -> Flops:
    """Return the operations of one step: playing its dialogues, and training on all their tokens."""
    talk = talk_flops(shape, user, lengths, lengths.dialogues)
    trained = training_flops(shape, lengths.dialogues * lengths.total, checkpoints=checkpoints)
    return Flops(trained, talk.prefill, talk.decode, talk.user_prefill, talk.user_decode)


def sync_bytes(shape: Shape, width: int) -> float:
    """Return what each engine is sent after a step: what is trained."""
    return trained_bytes(shape, width)


def exchange_bytes(shape: Shape, width: int, gpus: int, passes: int, *, shard_weights: bool) -> float:
    """Return what each training GPU sends in a step.

    Args:
        shape: of the policy.
        width: bytes of a weight.
        gpus: that train.
        passes: forward and backward passes of one GPU in the step.
        shard_weights: with FSDP, each pass gathers the weights twice and scatters gradients once; without, gradients
            are summed once a step over a ring: 2 (g - 1) / g of their bytes.
    """
    share, trained = (gpus - 1) / gpus, trained_bytes(shape, width)
    if shard_weights:
        return passes * share * (2 * width * shape.parameters + trained)
    return 2 * share * trained


def best_split(rollout: float, training: float, gpus: int) -> int:
    """Return how many of the GPUs should play, so that playing and training side by side end at the same time.

    Args:
        rollout: seconds of one GPU for a step's dialogues.
        training: seconds of one GPU for the step's training.
        gpus: two or more.
    """
    return min(range(1, gpus), key=lambda r: max(rollout / r, training / (gpus - r)))
