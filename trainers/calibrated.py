"""Calibrated interactive RL: a user fitted to people first, frozen, then interactive GRPO against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from duologue.errors import DuologueError
from duologue.simulators.calibrated_folder import FILE, read_note
from duologue.trainers.calibration import calibrate
from duologue.trainers.calibration_config import CalibrateConfig, CalibratedConfig
from duologue.trainers.calibration_rows import data_hash, divide, read_parts
from duologue.trainers.interactive import InteractiveTrainer


def train_calibrated(config: CalibratedConfig, on_phase: Callable[[str], None] | None = None) -> Path:
    """Calibrate a user if there are dialogues, then train the policy against it; a stopped run goes on.

    Args:
        config: everything that is not an object.
        on_phase: called with a sentence when something begins that takes time.

    Returns:
        The folder of the trained policy.

    Raises:
        DuologueError: as ``calibrate`` and ``InteractiveTrainer`` do, or if OUTPUT/user was calibrated otherwise.
    """
    user = config.simulator or f"calibrated:{_user_folder(config.for_user(), on_phase)}"
    return InteractiveTrainer(config.for_policy(user)).train()


def _user_folder(config: CalibrateConfig, on_phase: Callable[[str], None] | None) -> Path:
    """Return the calibrated user's folder; one that is complete and was made with the same settings is kept."""
    folder = Path(config.output)
    if not (folder / FILE).is_file():
        return calibrate(config, on_phase=on_phase)
    note, parts = read_note(folder), divide(*read_parts(config.dialogues, config.held_out), config.seed)
    if (note.settings, note.data_hash) != (asdict(config), data_hash(parts.training)):
        raise DuologueError(
            f"{folder} was calibrated with other settings or dialogues. Set these back, or choose another output."
        )
    return folder
