"""What a comparison needs: tokens, memory and hours, estimated from a preset's numbers with the formulas shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from duologue.analysis.compare.cells import RL_ARMS, Plan
from duologue.analysis.compare.preset import Preset, Shape

_GB = 1e9


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one optimiser step of an interactive arm; upper bounds from the limits."""

    dialogues: int
    sampled: int
    read: int
    """By the forward and backward pass."""
    user: int
    """Written by the user, where it is a model."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a training process, by what holds them."""

    weights: float
    optimiser: float
    activations: float
    cache: float
    user: float

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.weights + self.optimiser + self.activations + self.cache + self.user


def needs(plan: Plan) -> str:
    """Return, as Markdown, the stages of a comparison and what they need."""
    preset = plan.preset
    return "\n\n".join(
        [
            f"# {preset.env}, {plan.seeds} seed(s): {preset.about}",
            _stages(plan),
            _tokens_text(preset),
            _memory_text(preset),
            _hours_text(plan),
            *(f"{arm} is left out: {reason}." for arm, reason in plan.skipped.items()),
        ]
    )


def tokens(preset: Preset) -> Tokens:
    """Return the tokens of one step: every dialogue is taken to be as long as the limits allow."""
    rl, limits = preset.rl, preset.limits
    dialogues = int(rl.get("groups_per_step", 8)) * int(rl.get("group_size", 8))
    sampled = min(limits.max_turns * limits.max_tokens_per_turn, limits.max_total_tokens)
    read = limits.max_total_tokens
    return Tokens(dialogues, dialogues * sampled, dialogues * read, dialogues * max(0, read - sampled))


def memory(preset: Preset, *, full: bool) -> Memory:
    """Return the bytes of a training process.

    Args:
        preset: shapes of the models and sizes of batches.
        full: train every weight, sharded over the preset's GPUs; else adapters as ``rl.lora_rank`` has it, the frozen
            weights whole on each GPU.
    """
    shape, width = preset.policy, _bytes(preset)
    trained = shape.parameters if full else shape.trained_parameters
    shards = max(1, preset.machine.gpus) if full else 1
    length, batch = preset.limits.max_total_tokens, int(preset.rl.get("micro_batch_size", 8))
    logits = 2 * 4 * batch * length * shape.vocabulary
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_size * width
    share = tokens(preset).dialogues / max(1, preset.machine.gpus)
    return Memory(
        weights=width * shape.parameters / shards,
        optimiser=3 * width * trained / shards,
        activations=width * batch * length * shape.hidden * shape.layers + logits,
        cache=per_token * share * length,
        user=width * preset.user.parameters if preset.user else 0.0,
    )


def hours(plan: Plan) -> dict[str, float]:
    """Return hours by kind of stage: of one GPU at the preset's utilisation, or of its CPU. Upper bounds."""
    found: dict[str, float] = {}
    for stage in plan.stages:
        train, generate = _flops(plan.preset, stage.kind, stage.config)
        machine = plan.preset.machine
        seconds = train / machine.training_utilisation + generate / machine.generation_utilisation
        found[stage.kind] = found.get(stage.kind, 0.0) + seconds / (machine.tflops * 1e12) / 3600
    return found


def _flops(preset: Preset, kind: str, config: Any) -> tuple[float, float]:
    """Return operations of training (6 N T) and of generation (2 N T)."""
    n, length, step = preset.policy.parameters, preset.limits.max_total_tokens, tokens(preset)
    talk = 2 * (n * step.sampled + _user_size(preset) * step.user) / step.dialogues
    if kind == "shift":
        return 0.0, 0.0
    if kind == "fidelity":
        return 0.0, 2 * talk * config.dialogues_per_simulator  # replayed and free
    if kind in (*RL_ARMS, "axis"):
        steps = int(config.steps)
        return 6 * n * step.read * steps, talk * step.dialogues * steps
    if kind in ("evaluate", "logs", "base-logs", "people"):
        return 0.0, talk * config.episodes
    episodes = preset.base.episodes if kind == "base" else preset.logs.episodes
    size = _user_size(preset) or n if kind == "user" else n
    return 6 * size * episodes * length * float(config.epochs), 0.0


def _user_size(preset: Preset) -> float:
    return preset.user.parameters if preset.user else 0.0


def _bytes(preset: Preset) -> int:
    return 4 if preset.rl.get("dtype") == "float32" else 2


def _stages(plan: Plan) -> str:
    kinds = Counter(stage.kind for stage in plan.stages)
    further = len(plan.axis) + len(plan.checkpoints)
    cells = f"{len(plan.policies)} policies x {len({c.user for c in plan.cells})} users x {plan.seeds} seeds"
    cells += f", and {further} of checkpoints and along the axis" if further else ""
    listed = [f"| {kind} | {count} |{f' {cells}' if kind == 'evaluate' else ''} |" for kind, count in kinds.items()]
    names = ", ".join(stage.name for stage in plan.stages if stage.kind != "evaluate")
    return "\n".join(["| stage | times | |", "| --- | --- | --- |", *listed, "", f"In order: {names}, then evaluate."])


def _tokens_text(preset: Preset) -> str:
    step = tokens(preset)
    return (
        f"Tokens per step of an RL arm, at most: {step.dialogues} dialogues, {step.sampled:,} sampled "
        f"(dialogues x min(max_turns x max_tokens_per_turn, max_total_tokens)), {step.read:,} trained on "
        "(dialogues x max_total_tokens)."
    )


def _memory_text(preset: Preset) -> str:
    shape, width = preset.policy, _bytes(preset)
    lora = shape.trained_parameters < shape.parameters
    ways = [("adapters", False)] if lora else []
    ways += [(f"every weight, sharded over {max(1, preset.machine.gpus)}", True)] if lora or preset.machine.gpus else []
    rows = [_memory_row(name, memory(preset, full=full)) for name, full in ways or [("every weight", True)]]
    head = ["| trained | weights | gradients, AdamW | activations | KV cache | user | sum |", "|" + " --- |" * 7]
    formulas = (
        f"Memory per {'GPU' if preset.machine.gpus else 'process'} in GB (has {preset.machine.memory_gb:g}), with "
        f"{width} bytes b per number: weights b N, gradients and two moments 3 b N_trained, activations "
        "b batch length hidden layers (checkpoints between layers) + logits twice in float32, "
        "KV cache 2 layers kv_heads head_size b per token, user b N_user."
    )
    return "\n".join([formulas, "", *head, *rows, "", _shape_text("policy", shape), *_user_text(preset.user)])


def _memory_row(name: str, m: Memory) -> str:
    parts = (m.weights, m.optimiser, m.activations, m.cache, m.user, m.total)
    return f"| {name} | {' | '.join(f'{part / _GB:.2f}' for part in parts)} |"


def _user_text(shape: Shape | None) -> list[str]:
    return [_shape_text("user", shape)] if shape else []


def _shape_text(who: str, shape: Shape) -> str:
    return f"The {who}: N = {shape.parameters:.3g}, N_trained = {shape.trained_parameters:.3g}, {shape.layers} layers."


def _hours_text(plan: Plan) -> str:
    machine, found = plan.preset.machine, hours(plan)
    unit = "GPU-hours" if machine.gpus else "CPU-hours"
    rows = [f"| {kind} | {value:.2f} |" for kind, value in found.items()]
    formulas = (
        f"{unit}, at most: (6 N T for training at {machine.training_utilisation:.0%} + 2 N T for generation at "
        f"{machine.generation_utilisation:.0%}) of {machine.tflops:g} TFLOP/s; T from the limits. Scripted users cost "
        "nothing."
    )
    total = f"| **all** | **{sum(found.values()):.2f}** |"
    ending = f"\n\nOn {machine.gpus} GPUs: {sum(found.values()) / machine.gpus:.1f} hours." if machine.gpus else ""
    return "\n".join([formulas, "", f"| stage | {unit} |", "| --- | --- |", *rows, total]) + ending
