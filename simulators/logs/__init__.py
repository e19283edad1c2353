"""Logged dialogues: what people (or proxies) really said, for calibration, cloning and static-context training."""

from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.disjoint import Overlap, check_disjoint, overlaps, task_hash
from duologue.simulators.logs.files import check_logs, read_logs, write_logs
from duologue.simulators.logs.importers import Imported, import_logs, imported
from duologue.simulators.logs.language import user_script
from duologue.simulators.logs.problems import Problem
from duologue.simulators.logs.splits import split_logs
from duologue.simulators.logs.summary import LogSummary, Spread, summarise_logs

__all__ = [
    "Imported",
    "LogSummary",
    "LoggedDialogue",
    "Overlap",
    "Problem",
    "Spread",
    "check_disjoint",
    "check_logs",
    "import_logs",
    "imported",
    "overlaps",
    "read_logs",
    "split_logs",
    "summarise_logs",
    "task_hash",
    "user_script",
    "write_logs",
]
