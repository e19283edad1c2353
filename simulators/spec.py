"""From ``simulator=`` to a simulator: instances pass through, strings name the shipped ones."""

import re
from collections.abc import Callable

from duologue.errors import DuologueError, did_you_mean
from duologue.simulators.base import Simulator

ENVS = ("MathChat", "MediumDocEditChat")
"""Environments that shipped users know."""


def make_simulator(spec: str | Simulator, env: str) -> Simulator:
    """Return the user that a spec names, or the given instance.

    Args:
        spec: an instance, ``"scripted"``, ``"scripted:held-out"``, ``"scripted:default,sycophancy=0.5"`` (a mix, then
            rates, as ``personas.find_mix`` reads them), ``"prompted:MODEL"`` (model id, folder or URL, as
            ``duologue.engines.make_chat_model`` takes it), ``"calibrated:FOLDER"`` (output of ``duologue calibrate``;
            ``"calibrated:sglang:URL#FOLDER"`` if a SGLang server samples), ``"human"``,
            ``"replay:FILE.jsonl"`` (episodes).
        env: ``"MathChat"`` or ``"MediumDocEditChat"``, with or without its version.

    Raises:
        DuologueError: if the spec names nothing, or the object is no simulator.
    """
    if not isinstance(spec, str):
        return checked_instance(spec)
    name, _, argument = spec.partition(":")
    if name not in _MAKERS:
        raise DuologueError(f"There is no simulator named {name!r}. {did_you_mean(name, _MAKERS)}")
    return _MAKERS[name](argument, env_name(env))


def env_name(env: str) -> str:
    """Return the environment's name, ``MathChat`` for ``duologue.envs:MathChat-v0``.

    Raises:
        DuologueError: if shipped users do not know this environment, or not this version of it.
    """
    name = plain_name(env)
    if name not in ENVS or env.rpartition(":")[2] not in (name, f"{name}-v0"):
        known = [f"{one}-v0" for one in ENVS]
        raise DuologueError(f"Shipped simulators do not know the environment {env!r}. {did_you_mean(env, known)}")
    return name


def plain_name(env: str) -> str:
    """Return the name of any environment, known or not, without its module and version."""
    return re.sub(r"-v\d+$", "", env.rpartition(":")[2])


def checked_instance(spec: object) -> Simulator:
    """Return the object if it is a simulator.

    Raises:
        DuologueError: if it is a class, or has no ``respond`` method.
    """
    if isinstance(spec, type):
        raise DuologueError(f"simulator= got the class {spec.__name__}. Pass an instance: {spec.__name__}(...).")
    if not isinstance(spec, Simulator) or not callable(spec.respond):
        raise DuologueError(
            f"simulator= got {type(spec).__name__}, which has no respond(dialogues) method. "
            f"Give it one (see duologue.simulators.Simulator), or pass one of: {', '.join(map(repr, _MAKERS))}."
        )
    return spec


def _scripted(mix: str, env: str) -> Simulator:
    from duologue.simulators.scripted_document import ScriptedDocumentUser
    from duologue.simulators.scripted_math import ScriptedMathUser

    return ScriptedMathUser(mix or "default") if env == "MathChat" else ScriptedDocumentUser(mix or "default")


def _prompted(model: str, env: str) -> Simulator:
    if not model:
        raise DuologueError("'prompted' needs a model. Write 'prompted:MODEL' with a model id, a folder or a URL.")
    from duologue.engines import make_chat_model
    from duologue.simulators.guards import GuardedUser
    from duologue.simulators.prompted import PromptedUser

    return GuardedUser(PromptedUser(make_chat_model(model), env))


def _calibrated(argument: str, env: str) -> Simulator:
    from duologue.engines.spec import is_engine, make_engine, model_in

    folder = model_in(argument) if is_engine(argument) else argument
    if not folder:
        raise DuologueError(
            "'calibrated' needs a folder. Write 'calibrated:FOLDER', the output of duologue calibrate, or "
            "'calibrated:sglang:URL#FOLDER' if a server samples."
        )
    from duologue.simulators.calibrated import CalibratedUser
    from duologue.simulators.guards import GuardedUser

    engine = make_engine(argument) if is_engine(argument) else None
    return GuardedUser(CalibratedUser(folder, env, engine=engine), mend=False)


def _human(argument: str, env: str) -> Simulator:
    if argument:
        raise DuologueError(f"'human' takes no argument, got {argument!r}. Write 'human'.")
    from duologue.simulators.human import HumanUser

    return HumanUser()


def _replay(path: str, env: str) -> Simulator:
    if not path:
        raise DuologueError("'replay' needs a file of episodes. Write 'replay:FILE.jsonl'.")
    from duologue.simulators.replay import ReplayUser

    return ReplayUser.from_jsonl(path)


_MAKERS: dict[str, Callable[[str, str], Simulator]] = {
    "scripted": _scripted,
    "prompted": _prompted,
    "calibrated": _calibrated,
    "human": _human,
    "replay": _replay,
}
