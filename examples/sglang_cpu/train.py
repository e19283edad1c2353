"""Train against a SGLang server on this machine: policy and user are two adapters over one base model on one server.

    make sglang
    python -m examples.sglang_cpu.train --output runs/sglang

1. A scripted assistant's dialogues with scripted users are logged. One adapter is calibrated on what the users said,
   another is cloned from the assistant: without it the small model earns no reward to learn from.
2. A SGLang server of the embedded model (SmolLM2-135M-Instruct) starts, on loopback.
3. GRPO from the cloned adapter: the server samples both speakers, and loads the policy's new adapter after each
   optimiser step.
4. What it was worth: for each step, the version of the weights that sampled it, and by how much their log-probabilities
   differ from those that training computes in this process.

On a CPU this is slow and learns nothing in ten steps. It shows the path that a run on many GPUs takes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from duologue.analysis.collect import collect
from duologue.analysis.config import CollectConfig
from duologue.engines.models import default_model_folder
from duologue.errors import DuologueError
from duologue.trainers import InteractiveConfig, InteractiveTrainer
from duologue.trainers.calibration import calibrate
from duologue.trainers.calibration_config import CalibrateConfig
from duologue.trainers.cloning import CloningConfig, clone
from duologue.trainers.episode_log import JsonLines
from examples.sglang_cpu.process import MISSING, PYTHON, SGLangProcess

ENV = "MediumDocEditChat-v0"
TASKS = "notices:families=sale,split=train"
"""Scores of texts seldom tie, so that every step has something to learn from."""
FLAGS = ("--dtype", "float32", "--enable-lora", "--max-lora-rank", "16", "--lora-target-modules", "all")
FITTING: dict[str, Any] = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-3, "lora_rank": 8, "dtype": "float32"}
console = Console(soft_wrap=True)


def main() -> None:
    """Run the four steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("runs/sglang"), help="folder for everything (runs/sglang)")
    parser.add_argument("--steps", type=int, default=10, help="optimiser steps (10)")
    parser.add_argument("--logs", type=int, default=32, help="dialogues that both are fitted to first (32)")
    parser.add_argument("--server", help="address of a running server of the embedded model, with --enable-lora")
    args = parser.parse_args()
    try:
        run(args)
    except DuologueError as error:
        raise SystemExit(f"error: {error}") from None


def run(args: argparse.Namespace) -> None:
    """Fit both adapters, train, and show what each step was sampled with."""
    logs = logged(args.output / "logs.jsonl", args.logs)
    user, policy = calibrated_user(logs, args.output / "user"), cloned_policy(logs, args.output / "warm-start")
    with address(args.server, args.output / "server.log") as url:
        train(url, user, policy, args.output / "policy", args.steps)
    console.print(steps_table(args.output / "policy"))


def logged(output: Path, count: int) -> Path:
    """Let a scripted assistant talk with scripted users."""
    console.print(f"logging {count} dialogues")
    collect(
        CollectConfig(
            env=ENV,
            agent="scripted:hasty-writer",
            simulator="scripted",
            tasks=TASKS,
            max_turns=2,
            episodes=count,
            output=str(output),
        )
    )
    return output


def calibrated_user(logs: Path, output: Path) -> Path:
    """Fit an adapter to what the users said; kept from an earlier call."""
    if not (output / "calibration.json").is_file():
        console.print("calibrating the user")
        calibrate(CalibrateConfig(env=ENV, dialogues=str(logs), output=str(output), **FITTING))
    return output


def cloned_policy(logs: Path, output: Path) -> Path:
    """Fit an adapter to what the assistant said; kept from an earlier call."""
    if not (output / "adapter_config.json").is_file():
        console.print("cloning the assistant")
        clone(CloningConfig(dialogues=str(logs), output=str(output), **FITTING))
    return output


@contextmanager
def address(given: str | None, log: Path) -> Iterator[str]:
    """Yield the address of a running server, or start one for as long as it is needed."""
    if given:
        yield given
        return
    if not PYTHON.is_file():
        raise SystemExit(f"error: {MISSING}")
    server = SGLangProcess(default_model_folder(), log, *FLAGS)
    console.print(f"starting SGLang at {server.url} (about a minute)")
    try:
        server.start()
        yield server.url
    finally:
        server.end()


def train(url: str, user: Path, policy: Path, output: Path, steps: int) -> None:
    """Train the policy by GRPO; the server samples for it and for the user."""
    config = InteractiveConfig(
        model=str(policy),
        env=ENV,
        simulator=f"calibrated:sglang:{url}#{user}",
        tasks=TASKS,
        max_turns=2,
        max_tokens_per_turn=48,
        max_total_tokens=512,
        output=str(output),
        engine=f"sglang:{url}",
        dtype="float32",
        steps=steps,
        groups_per_step=1,
        group_size=6,
        micro_batch_size=6,
        learning_rate=3e-4,
        save_steps=steps,
    )
    InteractiveTrainer(config).train()


def steps_table(output: Path) -> Table:
    """Return a table of what each step was sampled with."""
    versions: dict[int, set[int]] = defaultdict(set)
    for row in JsonLines(output / "episodes.jsonl"):
        versions[row["step"]] |= {span["policy_version"] for span in row["spans"]}
    table = Table("step", "sampled with version", "mean |log p(train) - log p(sample)|", "reward")
    for row in JsonLines(output / "metrics.jsonl"):
        step = row["step"] - 1  # counted when it is over
        sampled = ", ".join(map(str, sorted(versions[step])))
        table.add_row(str(step), sampled, f"{row['sampling/logp_difference']:.1e}", f"{row['reward']:.2f}")
    return table


if __name__ == "__main__":
    main()
