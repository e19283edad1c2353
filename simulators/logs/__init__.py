"""Logged dialogues: what people (or proxies) really said, for calibration, cloning and static-context training."""

from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.files import read_logs, write_logs

__all__ = ["LoggedDialogue", "read_logs", "write_logs"]
