"""Configuration of rollouts and evaluations. Every field carries its help text; the command line's flags are these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duologue.errors import DuologueError


def _help(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """Dialogues of one agent with the users of one environment."""

    env: str = _help("Environment id, for instance MathChat-v0.", "MathChat-v0")
    agent: str = _help(
        "The assistant: 'default', a model's folder or id, http://host:port/v1, module:callable.", "default"
    )
    simulator: str = _help(
        "The user: scripted, scripted:MIX, prompted:MODEL, calibrated:FOLDER, calibrated:sglang:URL#FOLDER, human, "
        "replay:FILE.jsonl.",
        "scripted",
    )
    tasks: str | None = _help(
        "Task source, for instance math:level=1,split=train; the default is the environment's.", None
    )
    episodes: int = _help("Dialogues to play.", 8)
    num_envs: int = _help("Dialogues side by side.", 32)
    max_turns: int | None = _help("Most assistant turns per dialogue; the default is the environment's.", None)
    temperature: float = _help("Sampling temperature; 0 = greedy.", 1.0)
    system_prompt: str | None = _help("System message of the assistant; none by default.", None)
    max_tokens_per_turn: int = _help("Most tokens that the assistant may sample in a turn.", 256)
    max_total_tokens: int = _help(
        "Most tokens of a dialogue, of both speakers and the prompt; local models only.", 2048
    )
    seed: int = _help("Seeds tasks, users and the assistant's sampling.", 0)
    output: str = _help("JSONL file for the episodes; must not exist yet.", "episodes.jsonl")

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        for name in ("episodes", "num_envs", "max_tokens_per_turn", "max_total_tokens"):
            if getattr(self, name) < 1:
                raise DuologueError(f"{name} is {getattr(self, name)}. Set it to 1 or more.")
        for name in ("temperature", "seed"):
            if getattr(self, name) < 0:
                raise DuologueError(f"{name} is {getattr(self, name)}. Set it to 0 or more.")


@dataclass(frozen=True, slots=True)
class EvaluateConfig(RolloutConfig):
    """A measurement: by default 200 dialogues on test tasks with users whose phrases and habits training never saw."""

    simulator: str = _help("The user: scripted:held-out, prompted:MODEL, calibrated:FOLDER, …", "scripted:held-out")
    tasks: str | None = _help("Task source; the default is the environment's test split.", None)
    episodes: int = _help("Dialogues to play.", 200)
    output: str = _help("Folder for episodes.jsonl, report.json and report.md.", "runs/evaluate")
    resume: bool = _help("Keep the episodes that the folder has and play only what is missing.", True)
    overwrite: bool = _help("Throw away the episodes that the folder has.", False)


@dataclass(frozen=True, slots=True)
class CollectConfig(RolloutConfig):
    """Dialogues to be kept as logs, for cloning, calibration or static-context training."""

    output: str = _help("JSONL file for the logs.", "logs.jsonl")
    overwrite: bool = _help("Throw away the episodes that were played for this output before.", False)
