"""What limits a run, and what would relieve it."""

from __future__ import annotations

from duologue.analysis.plan.run import Run
from duologue.analysis.plan.sections import TOGETHER, Plan

_TIME = {
    "reading prompts": "Shorten the opening or play fewer turns; a server's radix cache shares a group's opening.",
    "sampling": "Serve the policy with an engine that batches better (a higher generation_utilisation), add GPUs, or "
    "lower max_tokens_per_turn.",
    "user": "Take a smaller or a scripted user, or serve it on GPUs of its own.",
    "training": "Train adapters (lora_rank) on the last layers alone (lora_top_layers), or add GPUs.",
    "exchange": "Train adapters, raise micro_batch_size (fewer passes gather weights), or take a faster network.",
    "sync": "Train adapters: only they are sent. Or take fewer, larger engines.",
}
_MEMORY = {
    "weights": "Set dtype: bfloat16, or shard with FSDP.",
    "gradients": "Train adapters (lora_rank), or shard with FSDP.",
    "optimiser": "Train adapters (lora_rank), or shard with FSDP.",
    "activations": "Lower micro_batch_size or max_total_tokens.",
    "logits": "Lower micro_batch_size or max_tokens_per_turn.",
    "cache": "Lower groups_per_step or max_total_tokens, or let GPUs of their own play.",
    "user": "Serve the user elsewhere (prompted:http://…), or take one on the policy's own base.",
}


def bottleneck(made: Plan) -> str:
    """Return the part of a step that takes most time where every GPU plays and trains."""
    return max(_TIME, key=lambda part: made.seconds.value(part, TOGETHER))


def findings(run: Run, made: Plan) -> list[str]:
    """Return, in sentences, what does not fit and what takes most time, each with what would relieve it."""
    found = [_memory(made, way, run.machine.memory_gb) for way in made.memory.columns]
    part, step = bottleneck(made), made.seconds.value("step", TOGETHER)
    share = made.seconds.value(part, TOGETHER) / step if step else 0.0
    if run.lengths.user == 0:
        found.append(
            "max_turns x max_tokens_per_turn reaches max_total_tokens, so that the limits leave the user nothing: read "
            "tokens of the user and of prompts from --episodes of an earlier run."
        )
    return [*filter(None, found), f"Most time goes to {part}: {share:.0%} of a step ({TOGETHER}). {_TIME[part]}"]


def _memory(made: Plan, way: str, there: float) -> str:
    needed = made.memory.value("sum", way)
    if needed <= there:
        return ""
    part = max(_MEMORY, key=lambda name: made.memory.value(name, way))
    return (
        f"{way}: {needed:.3g} GB do not fit into {there:g}. The largest part is {part}, "
        f"{made.memory.value(part, way):.3g} GB. {_MEMORY[part]}"
    )
