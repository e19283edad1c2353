"""Users: scripted, prompted, human and replayed, and the guards around them."""

from duologue.simulators.base import Simulator
from duologue.simulators.calibrated import CalibratedUser
from duologue.simulators.check import check_simulator
from duologue.simulators.guards import GuardedUser
from duologue.simulators.human import HumanUser
from duologue.simulators.leaks import leaks
from duologue.simulators.personas import MIXES, Mix, Persona, draw_persona
from duologue.simulators.prompted import PromptedUser
from duologue.simulators.reliable import answer_all
from duologue.simulators.replay import ReplayUser
from duologue.simulators.scripted_document import ScriptedDocumentUser
from duologue.simulators.scripted_math import ScriptedMathUser
from duologue.simulators.spec import make_simulator

__all__ = [
    "MIXES",
    "CalibratedUser",
    "GuardedUser",
    "HumanUser",
    "Mix",
    "Persona",
    "PromptedUser",
    "ReplayUser",
    "ScriptedDocumentUser",
    "ScriptedMathUser",
    "Simulator",
    "answer_all",
    "check_simulator",
    "draw_persona",
    "leaks",
    "make_simulator",
]
