"""What the stages do: each calls the part of duologue that does it, and tells what it cost."""

from __future__ import annotations

import gc
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duologue.analysis.config import CollectConfig, EvaluateConfig
from duologue.errors import DuologueError
from duologue.json_files import read_object
from duologue.trainers.config import InteractiveConfig

if TYPE_CHECKING:
    from duologue.analysis.fidelity.config import FidelityConfig
    from duologue.trainers.calibration_config import CalibrateConfig
    from duologue.trainers.cloning_config import CloningConfig
    from duologue.trainers.dpo_config import DpoConfig
    from duologue.trainers.scratch import ScratchConfig
    from duologue.trainers.static_config import StaticConfig


def collect_logs(config: CollectConfig) -> dict[str, Any]:
    """Let the assistant of the logs talk with the proxy human."""
    from duologue.analysis.collect import collect

    logged = collect(config)
    turns = [sum(m["role"] == "assistant" for m in dialogue.messages) for dialogue in logged]
    if not turns:
        raise DuologueError(f"No dialogue in {config.output} could be logged. Look at the errors there.")
    return {"dialogues": len(turns), "assistant_turns": sum(turns) / len(turns)}


def pretrain(config: ScratchConfig) -> dict[str, Any]:
    """Train the base from scratch."""
    from duologue.trainers import scratch

    scratch.pretrain(config)
    gc.collect()  # trainers and their models refer to each other in circles; the next stage needs the memory
    return {}


def clone_logs(config: CloningConfig) -> dict[str, Any]:
    """Clone the assistant of a file of logs."""
    from duologue.simulators.logs import read_logs
    from duologue.trainers.cloning import clone

    logged = [dialogue.messages for dialogue in read_logs(str(config.dialogues))]
    answered = [messages for messages in logged if len(messages) > 1]
    clone(config, answered)
    gc.collect()
    return {"steps": max(1, round(config.epochs * len(answered) / config.batch_size)), "sampled_tokens": 0}


def calibrate_user(config: CalibrateConfig) -> dict[str, Any]:
    """Fit the user to the human turns of the logs."""
    from duologue.trainers.calibration import calibrate

    calibrate(config)
    gc.collect()
    return {}


def train_interactive(config: InteractiveConfig) -> dict[str, Any]:
    """Train a policy against its user."""
    from duologue.trainers.interactive import InteractiveTrainer

    InteractiveTrainer(config).train()
    gc.collect()
    return cost_of_training(config)


def train_static(config: StaticConfig, matched: bool) -> dict[str, Any]:
    """Train a policy on logged contexts.

    Args:
        config: with the groups per step of the interactive arms.
        matched: give it as many more groups as the logs have assistant turns in a dialogue, since its episodes are one
            turn long: then a step samples about as many tokens as one of the interactive arms.
    """
    from duologue.simulators.logs import read_logs
    from duologue.trainers.static import StaticTrainer

    if matched:
        turns = [sum(m["role"] == "assistant" for m in d.messages) for d in read_logs(str(config.dialogues))]
        config = replace(config, groups_per_step=matched_groups(config, sum(turns) / len(turns)))
    StaticTrainer(config).train()
    gc.collect()
    return cost_of_training(config)


def train_dpo(config: DpoConfig) -> dict[str, Any]:
    """Train a policy on pairs of replies to logged contexts; without any pair it stays the base, after 0 steps."""
    from duologue.trainers import dpo

    try:
        dpo.train_dpo(config)
    except dpo.NothingToPreferError:  # as little of a reason to stop as the flat groups of the other arms
        dpo.keep_policy(config)
    gc.collect()
    counts = read_object(Path(config.output) / "counts.json", "Run the same command again.")
    steps = dpo.dpo_steps(config, counts["pairs"]) if counts["pairs"] else 0
    return {"steps": steps, "dialogues": counts["continuations"], **counts}


def matched_groups(config: InteractiveConfig, turns: float) -> int:
    """Return groups per step for episodes of one turn instead of ``turns``; micro-batches still divide a step."""
    unit = config.micro_batch_size // math.gcd(config.micro_batch_size, config.group_size)
    return max(1, round(config.groups_per_step * turns / unit)) * unit


def cost_of_training(config: InteractiveConfig) -> dict[str, Any]:
    """Return the optimiser steps of a run, its dialogues, and the tokens that its policy sampled."""
    from duologue.analysis.figures import read_metrics

    rows = read_metrics(Path(config.output) / "metrics.jsonl")
    dialogues = config.episodes_per_step
    tokens = sum(dialogues * _number(row, "dialogue/policy_tokens") for row in rows)
    return {
        "steps": len(rows),
        "dialogues": dialogues * len(rows),
        "groups_per_step": config.groups_per_step,
        "sampled_tokens": round(tokens),
    }


def measure(config: EvaluateConfig) -> dict[str, Any]:
    """Play a policy with a user."""
    from duologue.analysis.evaluation import evaluate

    report = evaluate(config)
    return {"signature": report.signature, "scored": report.scored, "unscored": report.unscored}


def measure_fidelity(config: FidelityConfig) -> dict[str, Any]:
    """Measure how human a user is."""
    from duologue.analysis.fidelity.run import fidelity

    (user,), report = config.simulators, fidelity(config)
    scores = {mode: report.score(user, mode).to_json() for mode in ("replayed", "free")}
    differs = [
        f"{row.measure.name} ({row.mode})" for row in report.rows if user in row.cells and row.cells[user].differs
    ]
    return {**scores, "differs": differs, "signature": report.signature}


def _number(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    return float(value) if value is not None else 0.0
