"""Users: scripted, prompted, human and replayed, and the guards around them."""

from duologue.simulators.base import Simulator
from duologue.simulators.personas import MIXES, Mix, Persona, draw_persona
from duologue.simulators.reliable import answer_all
from duologue.simulators.spec import make_simulator

__all__ = ["MIXES", "Mix", "Persona", "Simulator", "answer_all", "draw_persona", "make_simulator"]
