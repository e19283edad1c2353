"""A person plays the assistant at the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import SupportsFloat

from duologue.errors import DuologueError


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """One dialogue in which you are the assistant."""

    env: str = field(default="MathChat-v0", metadata={"help": "Environment id."})
    simulator: str = field(default="scripted", metadata={"help": "The user: scripted, scripted:MIX, prompted:MODEL, …"})
    tasks: str | None = field(default=None, metadata={"help": "Task source; the default is the environment's."})
    max_turns: int | None = field(default=None, metadata={"help": "Most turns; the default is the environment's."})
    seed: int | None = field(
        default=None, metadata={"help": "Fixes task and user; a new dialogue each time if not given."}
    )

    def __post_init__(self) -> None:
        """Check the seed.

        Raises:
            DuologueError: if it is below 0.
        """
        if self.seed is not None and self.seed < 0:
            raise DuologueError(f"seed is {self.seed}. Set it to 0 or more.")


def play_dialogue(config: PlayConfig, read: Callable[[str], str] = input, write: Callable[[str], None] = print) -> None:
    """Play until the dialogue ends or the input does, then tell score and reason.

    Raises:
        DuologueError: if the environment cannot be made.
    """
    from duologue.analysis.play import single_env
    from duologue.analysis.report import visible

    env = single_env(config.env, config.simulator, config.tasks, config.max_turns)
    try:
        text, info = env.reset(seed=config.seed)
        reward: SupportsFloat = 0.0
        while "stop_reason" not in info:
            write(f"user: {visible(text)}")
            text, reward, _, _, info = env.step(read("you: "))
        write("\n".join([*([f"user: {visible(text)}"] if text else []), _outcome(info, float(reward))]))
    except EOFError:
        write("\nYou left.")
    finally:
        env.close()


def _outcome(info: dict[str, object], reward: float) -> str:
    score = f"score {reward:.2f}" if info.get("scored") else "not scored"
    return " ".join(filter(None, [f"[{info['stop_reason']}] {score}.", str(info.get("error", ""))]))
