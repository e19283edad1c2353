"""A real language model gets better at a multi-turn task by GRPO against a simulated user, on two CPU cores.

    python examples/demo.py --output runs/demo

1. A scripted, hasty assistant talks with simulated users; the dialogues are logged.
2. The embedded model (SmolLM2-135M-Instruct) is warm-started on these logs. It learns how to ask and how to answer,
   and it learns the haste: half of the time it answers before it has been told the numbers.
3. Evaluation before: held-out users (other habits, other phrases) with test problems that training never sees.
4. Interactive GRPO against the training users, reward 1 for a right final answer, for as many steps as fit the time.
5. Evaluation after, on the same problems and users, and what changed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table
from transformers import TrainerCallback

from duologue.analysis import EvaluateConfig, EvaluationReport, difference, evaluate, learning_curve, transcript
from duologue.trainers import FunctionAgent, InteractiveConfig, InteractiveTrainer, Rollout, Start
from duologue.trainers.cloning import CloningConfig, clone
from duologue.trainers.scripted_agent import HastyMathAgent
from duologue.types import Episode

TASKS = "math:level=1,split={split}"
SYSTEM = "You help with maths."
MAX_TURNS = 5
LIMITS: dict[str, Any] = {"max_tokens_per_turn": 20, "max_total_tokens": 400}
console = Console(soft_wrap=True)


def main() -> None:
    """Run the five steps and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), help="folder for everything (runs/demo)")
    parser.add_argument("--logs", type=int, default=128, help="logged dialogues for the warm start (128)")
    parser.add_argument("--dialogues", type=int, default=200, help="dialogues per evaluation (200)")
    parser.add_argument("--steps", type=int, default=14, help="most GRPO steps (14)")
    parser.add_argument("--minutes", type=float, default=13.0, help="time for all; GRPO gets what is left of it (13)")
    parser.add_argument("--seed", type=int, default=0, help="seeds everything (0)")
    args = parser.parse_args()
    started = time.monotonic()

    console.rule("1  logged dialogues of a hasty assistant")
    logs = log_dialogues(args.output / "logs.jsonl", args.logs)
    console.rule("2  warm start of SmolLM2-135M-Instruct on the logs")
    warm = warm_start(logs, args.output / "warm-start", args.seed)
    cloned = time.monotonic()
    console.rule("3  before: held-out users, test problems")
    before = measure(warm, args.output / "before", args.dialogues)
    evaluated = time.monotonic()
    console.rule("4  interactive GRPO against simulated users")
    trained = train(warm, args, until=started + args.minutes * 60 - (evaluated - cloned))
    console.rule("5  after: the same held-out users and problems")
    after = measure(trained, args.output / "after", args.dialogues)

    report(before, after, args.output)
    console.print(f"\nDone in {(time.monotonic() - started) / 60:.1f} minutes. Everything is in {args.output}.")


def log_dialogues(path: Path, count: int) -> list[Episode]:
    """Let the hasty assistant talk with training users."""
    env = gym.make_vec(
        "duologue.envs:MathChat-v0",
        num_envs=min(32, count),
        vectorization_mode="vector_entry_point",
        tasks=TASKS.format(split="train"),
        max_turns=MAX_TURNS,
    )
    episodes = Rollout(env, FunctionAgent(HastyMathAgent(haste=0.5, slips=0.0))).play(
        [Start(10_000 + i) for i in range(count)]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(episode.to_json()) + "\n" for episode in episodes), encoding="utf-8")
    solved = sum(episode.reward or 0.0 for episode in episodes) / count
    console.print(f"{count} dialogues, {solved:.0%} solved, in {path}")
    return episodes


def warm_start(logs: list[Episode], output: Path, seed: int) -> Path:
    """Clone the hasty assistant."""
    config = CloningConfig(
        output=str(output),
        system_prompt=SYSTEM,
        batch_size=4,
        learning_rate=1e-3,
        lora_top_layers=15,
        max_total_tokens=LIMITS["max_total_tokens"],
        seed=seed,
    )
    return clone(config, [episode.messages for episode in logs])


def measure(agent: Path, output: Path, dialogues: int) -> EvaluationReport:
    """Evaluate a policy against users and problems that no training saw."""
    config = EvaluateConfig(
        env="duologue.envs:MathChat-v0",
        agent=str(agent),
        simulator="scripted:held-out",
        tasks=TASKS.format(split="test"),
        episodes=dialogues,
        num_envs=min(48, dialogues),
        max_turns=MAX_TURNS,
        system_prompt=SYSTEM,
        output=str(output),
        overwrite=True,
        **LIMITS,
    )
    shown = evaluate(config)
    console.print(f"accuracy {shown.score}, turns per dialogue {shown.turns}")
    return shown


def train(start: Path, args: argparse.Namespace, until: float) -> Path:
    """Train the warm-started policy until the steps are used up or the clock (``time.monotonic``) says so."""
    config = InteractiveConfig(
        env="duologue.envs:MathChat-v0",
        simulator="scripted",
        tasks=TASKS.format(split="train"),
        max_turns=MAX_TURNS,
        model=str(start),
        system_prompt=SYSTEM,
        output=str(args.output / "grpo"),
        steps=args.steps,
        groups_per_step=4,
        group_size=8,
        micro_batch_size=8,
        learning_rate=5e-4,
        seed=args.seed,
        **LIMITS,
    )
    return InteractiveTrainer(config, callbacks=[StopAt(until)]).train()


class StopAt(TrainerCallback):
    """Ends training at the first step boundary after a time."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask TRL to stop."""
        control.should_training_stop = control.should_training_stop or time.monotonic() > self.deadline


def report(before: EvaluationReport, after: EvaluationReport, output: Path) -> None:
    """Print and save the table, the learning curve and two transcripts."""
    gain = difference(after.scores, before.scores)
    table = Table("held-out users, test problems", "before GRPO", "after GRPO")
    table.add_row("accuracy [95 % interval]", str(before.score), str(after.score))
    table.add_row("turns per dialogue", str(before.turns), str(after.turns))
    table.add_row("gain in accuracy, paired", "", str(gain))
    console.print(table)
    console.print(f"Signature before: {before.signature}\nSignature after:  {after.signature}", highlight=False)
    curve = learning_curve(output / "grpo" / "metrics.jsonl", output / "learning_curve.png")
    pair = improved_pair(before, after)
    texts = [f"{name}\n{transcript(episode)}" for name, episode in zip(("BEFORE", "AFTER"), pair, strict=True)]
    (output / "transcripts.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    console.print("\n\n".join(["", *texts]), markup=False, highlight=False)
    console.print(f"\nLearning curve: {curve}. " + verdict(before, after, gain.low))


def improved_pair(before: EvaluationReport, after: EvaluationReport) -> tuple[Episode, Episode]:
    """Return the first problem that only the trained policy solves (or simply the first), before and after."""
    pairs = list(zip(before.episodes, after.episodes, strict=True))
    return next(((b, a) for b, a in pairs if not b.reward and a.reward), pairs[0])


def verdict(before: EvaluationReport, after: EvaluationReport, lowest_gain: float) -> str:
    """Say in a sentence whether the gain is real."""
    if lowest_gain > 0 and after.score.low > before.score.high:
        return "The policy got better: the gain is outside the 95 % intervals."
    return "No gain outside the 95 % intervals in the time it had. Give it more: --minutes 30 --steps 40."


if __name__ == "__main__":
    main()
