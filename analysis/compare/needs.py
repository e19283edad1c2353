"""What a comparison needs: tokens, memory and hours, estimated from a preset's numbers with the formulas shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from duologue.analysis.compare.cells import RL_ARMS, Plan
from duologue.analysis.compare.preset import Preset
from duologue.analysis.plan.lengths import Lengths, longest
from duologue.analysis.plan.memory import Batch, Memory, cache_bytes, kept_rows, layer_bytes, training_memory
from duologue.analysis.plan.shape import Shape, bytes_per_number
from duologue.analysis.plan.work import Flops, step_flops, talk_flops, training_flops
from duologue.trainers.scripted_spec import PREFIX

_GB = 1e9
_SAMPLED = ("prompted", "calibrated")
"""Users that a language model speaks for; the others cost nothing."""


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


def lengths(preset: Preset) -> Lengths:
    """Return the dialogues of one step of an RL arm: each is taken to be as long as the limits allow."""
    rl, limits = preset.rl, preset.limits
    size = int(rl.get("group_size", 8))
    dialogues = int(rl.get("groups_per_step", 8)) * size
    return longest(dialogues, size, limits.max_turns, limits.max_tokens_per_turn, limits.max_total_tokens)


def memory(preset: Preset, *, full: bool) -> Memory:
    """Return the bytes of a training process, which plays the dialogues as well.

    Args:
        preset: shapes of the models and sizes of batches.
        full: train every weight, sharded over the preset's GPUs; else adapters as ``rl.lora_rank`` has it, the frozen
            weights whole on each GPU.
    """
    shape, width, machine, step = preset.policy, _bytes(preset), preset.machine, lengths(preset)
    shape = replace(shape, trained_parameters=shape.parameters) if full else shape
    rows = int(preset.rl.get("micro_batch_size", 8))
    batch = Batch(rows * step.total, rows * step.sampled, gpu=machine.gpus > 0)
    shards = machine.devices if full else 1
    return replace(
        training_memory(shape, batch, width, shards=shards, shard_weights=full),
        cache=cache_bytes(shape, kept_rows(step.dialogues / machine.devices) * step.total, width),
        user=width * preset.user.parameters if preset.user else 0.0,
    )


def hours(plan: Plan) -> dict[str, float]:
    """Return hours by kind of stage: of one GPU at the preset's utilisation, or of its CPU. Upper bounds."""
    found: dict[str, float] = {}
    for stage in plan.stages:
        seconds = _flops(plan.preset, stage.kind, stage.config).seconds(plan.preset.machine).total
        found[stage.kind] = found.get(stage.kind, 0.0) + seconds / 3600
    return found


def _flops(preset: Preset, kind: str, config: Any) -> Flops:
    """Return the operations of a stage."""
    shape, step, nothing = preset.policy, lengths(preset), Flops(0.0, 0.0, 0.0, 0.0, 0.0)
    if kind == "shift":
        return nothing
    if kind == "fidelity":
        (user,) = config.simulators
        return _talk(preset, config.agent, user, 2 * config.dialogues_per_simulator)  # replayed and free
    if kind in (*RL_ARMS, "axis"):
        user = _user(preset, config.simulator)
        return step_flops(shape, user, step, checkpoints=preset.machine.gpus > 0).times(int(config.steps))
    if kind in ("evaluate", "logs", "base-logs", "people"):
        return _talk(preset, config.agent, config.simulator, config.episodes)
    if kind == "dpo":
        return _dpo_flops(preset, config)
    episodes = preset.base.episodes if kind == "base" else preset.logs.episodes
    size = preset.user or shape if kind == "user" else shape
    read = episodes * step.total * float(config.epochs)
    return replace(nothing, training=training_flops(size, read, checkpoints=preset.machine.gpus > 0))


def _dpo_flops(preset: Preset, config: Any) -> Flops:
    """Play the continuations, then read both replies of a pair twice (as policy and as reference) and learn once."""
    shape, step = preset.policy, lengths(preset)
    talk = talk_flops(
        shape, _user(preset, config.simulator), step, config.max_contexts * config.replies * config.continuations
    )
    read = 2 * config.max_contexts * step.total
    learned = training_flops(shape, read * float(config.epochs), checkpoints=preset.machine.gpus > 0)
    return replace(talk, training=learned + 2 * shape.parameters * read)


def _talk(preset: Preset, agent: str, user: str, dialogues: int) -> Flops:
    """Return the operations of dialogues between an agent and a user, given as specs; who is scripted needs none."""
    talk = talk_flops(preset.policy, _user(preset, user), lengths(preset), dialogues)
    return replace(talk, prefill=0.0, decode=0.0) if agent.startswith(PREFIX) else talk


def _user(preset: Preset, spec: str) -> Shape | None:
    return preset.user if spec.partition(":")[0] in _SAMPLED else None


def _bytes(preset: Preset) -> int:
    return bytes_per_number(str(preset.rl.get("dtype", "auto")), preset.machine)


def _stages(plan: Plan) -> str:
    kinds = Counter(stage.kind for stage in plan.stages)
    further = len(plan.axis) + len(plan.checkpoints)
    cells = f"{len(plan.policies)} policies x {len({c.user for c in plan.cells})} users x {plan.seeds} seeds"
    cells += f", and {further} of checkpoints and along the axis" if further else ""
    listed = [f"| {kind} | {count} |{f' {cells}' if kind == 'evaluate' else ''} |" for kind, count in kinds.items()]
    names = ", ".join(stage.name for stage in plan.stages if stage.kind != "evaluate")
    return "\n".join(["| stage | times | |", "| --- | --- | --- |", *listed, "", f"In order: {names}, then evaluate."])


def _tokens_text(preset: Preset) -> str:
    step = lengths(preset)
    return (
        f"Tokens per step of an RL arm, at most: {step.dialogues} dialogues, {step.dialogues * step.sampled:,.0f} "
        "sampled (dialogues x min(max_turns x max_tokens_per_turn, max_total_tokens)), "
        f"{step.dialogues * step.total:,.0f} trained on (dialogues x max_total_tokens)."
    )


def _memory_text(preset: Preset) -> str:
    shape, width, gpus = preset.policy, _bytes(preset), preset.machine.gpus
    ways = [("adapters", False)] if shape.adapters else []
    ways += [(f"every weight, sharded over {preset.machine.devices}", True)] if shape.adapters or gpus else []
    rows = [_memory_row(name, memory(preset, full=full)) for name, full in ways or [("every weight", True)]]
    tiles = ", in tiles" if gpus else ""
    kept = "b tokens layers hidden + one layer" if gpus else f"tokens layers {layer_bytes(shape, width):,.0f}"
    head = ["| trained | weights | gradients, AdamW | activations | KV cache | user | sum |", "|" + " --- |" * 7]
    formulas = (
        f"Memory per {'GPU' if gpus else 'process'} in GB (has {preset.machine.memory_gb:g}), with {width} bytes b per "
        "number (4 for those of adapters): weights b N, gradients and two moments 3 b N_trained, activations "
        f"{kept} + logits twice in float32{tiles}, KV cache 2 layers kv_heads head_size "
        "b per token, for this turn, the turn before and the batch that runs, user b N_user. More: `duologue plan`."
    )
    return "\n".join([formulas, "", *head, *rows, "", _shape_text("policy", shape), *_user_text(preset.user)])


def _memory_row(name: str, m: Memory) -> str:
    parts = (m.weights, m.gradients + m.optimiser, m.activations + m.logits, m.cache, m.user, m.total)
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
        f"{unit}, at most: (6 N T for training, with adapters 4 N T + 6 N_trained T, with checkpoints 2 N T more; "
        f"2 N T for reading; both at {machine.training_utilisation:.0%}; 2 N T for generation at "
        f"{machine.generation_utilisation:.0%}) of {machine.tflops:g} TFLOP/s; T from the limits. Who is "
        "scripted costs nothing."
    )
    total = f"| **all** | **{sum(found.values()):.2f}** |"
    ending = f"\n\nOn {machine.gpus} GPUs: {sum(found.values()) / machine.gpus:.1f} hours." if machine.gpus else ""
    return "\n".join([formulas, "", f"| stage | {unit} |", "| --- | --- |", *rows, total]) + ending
