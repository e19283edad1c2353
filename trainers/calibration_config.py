"""Configuration of calibration, and of training against a calibrated user."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.config import InteractiveConfig, check_numbers, with_help

_OURS = ("env", "dialogues", "held_out", "output", "seed", "dtype")
"""Fields of the calibration that the training's own fields set."""


@dataclass(frozen=True, slots=True)
class CalibrateConfig:
    """Calibration of the user on logged dialogues."""

    env: str = with_help("Environment that the dialogues belong to.", "MathChat-v0")
    dialogues: str | None = with_help("Logged dialogues to learn from (JSONL).", None)
    held_out: str | None = with_help(
        "Logged dialogues to measure on (JSONL). Without, a fifth of the others: by person if all are known, else by "
        "dialogue.",
        None,
    )
    model: str = with_help("The model to start from.", "default")
    output: str = with_help("Folder for the user.", "runs/user")
    epochs: float = with_help("Passes over the dialogues.", 2.0)
    batch_size: int = with_help("Dialogues per optimiser step.", 8)
    learning_rate: float = with_help("Learning rate of AdamW, decaying linearly to 0.", 2e-4)
    max_total_tokens: int = with_help("Longest dialogue in tokens. A longer one is an error: nothing is cut.", 4096)
    drop_long: bool = with_help("Leave longer dialogues out, and report which.", False)
    lora_rank: int = with_help("Rank of LoRA adapters on all linear layers; 0 trains every weight.", 16)
    lora_top_layers: int | None = with_help("Put adapters on the last so many layers only.", None)
    dtype: str = with_help("Weights: float32, bfloat16 or auto.", "auto")
    seed: int = with_help("Seeds the split, order and initialisation.", 0)

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        from duologue.simulators.spec import env_name  # it loads numpy, and the command line shows help without

        env_name(self.env)
        check_numbers(self)


@dataclass(frozen=True, slots=True)
class CalibratedConfig(InteractiveConfig):
    """Interactive GRPO against a user that was fitted to people."""

    simulator: str = with_help(
        "The user, calibrated:FOLDER, or calibrated:sglang:URL#FOLDER on a server; leave it out with --dialogues.", ""
    )
    output: str = with_help("Folder for checkpoints, episodes.jsonl and logs.", "runs/calibrated")
    dialogues: str | None = with_help("Calibrate a user on these logs first (JSONL); it goes to OUTPUT/user.", None)
    held_out: str | None = with_help("Logs to measure that user on (JSONL); without, a fifth of the others.", None)
    user_model: str | None = with_help("Model that the user starts from; the policy's by default.", None)
    calibration: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "Any other field of the calibration, such as epochs=3."}
    )

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        InteractiveConfig.__post_init__(self)
        if bool(self.dialogues) == bool(self.simulator):
            raise DuologueError("Give either dialogues to calibrate a user on, or simulator calibrated:FOLDER.")
        if self.simulator and not self.simulator.startswith("calibrated:"):
            raise DuologueError(
                f"simulator is {self.simulator!r}, not calibrated:FOLDER. For other users run: duologue train "
                "interactive."
            )
        if self.dialogues:
            self.for_user()

    def for_user(self) -> CalibrateConfig:
        """Return the configuration of the calibration that comes first."""
        known = {f.name for f in fields(CalibrateConfig)} - set(_OURS)
        for name in self.calibration:
            if name not in known:
                raise DuologueError(f"calibration has no field {name!r} to set. {did_you_mean(name, known)}")
        given: dict[str, Any] = {"model": self.user_model or self.model, **self.calibration}
        return CalibrateConfig(
            env=self.env,
            dialogues=self.dialogues,
            held_out=self.held_out,
            output=str(Path(self.output) / "user"),
            seed=self.seed,
            dtype=self.dtype,
            **given,
        )

    def for_policy(self, user: str) -> InteractiveConfig:
        """Return the configuration of the training against ``user``."""
        values = {f.name: getattr(self, f.name) for f in fields(InteractiveConfig)}
        return InteractiveConfig(**{**values, "simulator": user})
