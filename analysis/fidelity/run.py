"""``duologue fidelity``: how human users are, replayed and free, beside people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duologue
from duologue.analysis.fidelity.compare import Column, columns_of_people, rows_of
from duologue.analysis.fidelity.config import FidelityConfig
from duologue.analysis.fidelity.counting import RESAMPLES
from duologue.analysis.fidelity.foretell import foretold
from duologue.analysis.fidelity.form import word_list
from duologue.analysis.fidelity.free import converse
from duologue.analysis.fidelity.measures import MODES, Mode, measures
from duologue.analysis.fidelity.pictures import distances
from duologue.analysis.fidelity.replay import Beside, OnTurns, TurnFile, replay
from duologue.analysis.fidelity.report import FidelityReport
from duologue.analysis.fidelity.tables import markdown
from duologue.analysis.fidelity.telling import require_extra
from duologue.analysis.fidelity.turns import talk_of_log, unprompted
from duologue.disk import explains_full_disk, write_whole
from duologue.errors import DuologueError
from duologue.rewards import signature_of
from duologue.simulators.base import Simulator
from duologue.simulators.logs import LoggedDialogue, check_disjoint, read_logs, split_logs
from duologue.simulators.spec import env_name, make_simulator
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Agent, Limits
from duologue.trainers.calibration_rows import data_hash

Follow = Callable[[str], AbstractContextManager[OnTurns]]
"""From what is going on to a context that yields a function of turns (or dialogues) done and in all."""
_LIMITS = Limits(256, 2048)
_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class People:
    """The dialogues that all columns are compared with, and those whose histories are replayed."""

    reference: list[LoggedDialogue]
    held_out: list[LoggedDialogue]


@explains_full_disk("run the same command: what users have said is kept, and only what is missing is asked.")
def fidelity(
    config: FidelityConfig,
    simulators: Mapping[str, Simulator] | None = None,
    agent: Agent | None = None,
    follow: Follow | None = None,
) -> FidelityReport:
    """Measure users, and write ``fidelity.json``, ``table.md`` and ``distances.png`` to the output folder.

    What the users say is kept there too: called again with the same configuration, only what is missing is asked.

    Args:
        config: what to measure.
        simulators: users that are objects, by name; the others of ``config.simulators`` are made from their specs.
        agent: the assistant of free dialogues; None = the one that the configuration names.
        follow: shows progress.

    Raises:
        DuologueError: if dialogues are missing, malformed or in both halves, a part cannot be made, or a user failed
            everywhere.
        MissingExtraError: without scikit-learn.
    """
    require_extra()
    env_name(config.env)
    people = divide(config)
    folder = Path(config.output)
    folder.mkdir(parents=True, exist_ok=True)
    agent = agent or make_agent(config.assistant, _LIMITS, 1.0, None)
    reference = [talk_of_log(d, config.env) for d in people.reference]
    held_out = unprompted([talk_of_log(d, config.env) for d in people.held_out])
    columns: dict[Mode, dict[str, Column]] = {mode: columns_of_people(held_out, reference) for mode in MODES}
    users: dict[str, dict[str, Any]] = {}
    nll: dict[str, dict[str, Any] | None] = {}
    for name in config.simulators:
        user = (simulators or {}).get(name) or make_simulator(name, config.env)
        said = _spoken(config, name, user, agent, people, follow or (lambda title: nullcontext(_quiet)))
        columns["replayed"][name] = Column(said["replayed"].talks, said["replayed"].people, paired=True)
        columns["free"][name] = Column(said["free"].talks, held_out)
        users[name] = {"signature": signature_of(user), "failed": {m: dict(said[m].failed) for m in MODES}}
        nll[name] = foretold(user, people.held_out)
    listed = word_list([*people.reference, *people.held_out])
    rows = rows_of(columns, dict.fromkeys(MODES, reference), measures(listed, config.seed), config.seed)
    report = FidelityReport(_signature(config, people, agent), {**_about(people), "users": users}, rows, nll)
    _write(report, folder)
    return report


def divide(config: FidelityConfig) -> People:
    """Return people's dialogues in two parts.

    Raises:
        DuologueError: if a file cannot be used, the parts share a dialogue, or one is empty.
    """
    dialogues = read_logs(config.dialogues)
    if config.held_out is not None:
        held_out = read_logs(config.held_out)
        check_disjoint(dialogues, held_out, tasks=False)
        return People(dialogues, held_out)
    persons = {dialogue.person for dialogue in dialogues}
    by: Any = "person" if None not in persons and len(persons) > 1 else "dialogue"
    parts = split_logs(dialogues, {"reference": 0.5, "held_out": 0.5}, by, config.seed)
    return People(parts["reference"], parts["held_out"])


def _spoken(
    config: FidelityConfig, name: str, user: Simulator, agent: Agent, people: People, follow: Follow
) -> dict[Mode, Beside]:
    """Return what a user said, replayed and free."""
    folder = Path(config.output)
    with follow(f"{name}, replayed") as show:
        file = TurnFile(folder / "turns.jsonl")
        replayed = replay(
            user, people.held_out, config.env, seed=config.seed, timeout=_TIMEOUT, file=file, on_turns=show
        )
    _refuse_failed(name, replayed)
    count = config.dialogues_per_simulator or len(people.held_out)
    tasks = [dialogue.task for dialogue in people.held_out]
    place = folder / "free" / str(config.simulators.index(name))
    with follow(f"{name}, free") as show:
        free = converse(user, agent, tasks, config.env, count, place, seed=config.seed, on_turns=show)
    _refuse_failed(name, free)
    return {"replayed": replayed, "free": free}


def _refuse_failed(name: str, found: Beside) -> None:
    if not found.talks:
        reason = next(iter(found.failed), "nothing was said")
        raise DuologueError(f"The user {name!r} failed everywhere: {reason} Mend it, or leave it out.")


def _about(people: People) -> dict[str, Any]:
    parts: dict[str, Sequence[LoggedDialogue]] = {"reference": people.reference, "held_out": people.held_out}
    return {
        name: {
            "dialogues": len(part),
            "turns": sum(m["role"] == "user" for d in part for m in d.messages),
            "data_hash": data_hash(part),
        }
        for name, part in parts.items()
    }


def _signature(config: FidelityConfig, people: People, agent: Agent) -> str:
    count = config.dialogues_per_simulator or len(people.held_out)
    return (
        f"env:{config.env}|reference:{data_hash(people.reference)}|held-out:{data_hash(people.held_out)}"
        f"|agent:{agent.signature}|n:{count}|seed:{config.seed}|resamples:{RESAMPLES}|v:{duologue.__version__}"
    )


def _write(report: FidelityReport, folder: Path) -> None:
    texts = {"fidelity.json": json.dumps(report.to_json(), indent=2), "table.md": markdown(report)}
    for name, text in texts.items():
        write_whole(folder / name, text + "\n")
    distances(report, folder / "distances.png")


def _quiet(done: int, total: int) -> None:
    """Show nothing."""
