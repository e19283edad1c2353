"""Play a policy with a simulator and with the human, ask both sides on shared histories, and measure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from duologue.analysis.config import EvaluateConfig
from duologue.analysis.evaluation import evaluate
from duologue.analysis.play import OnProgress, VectorEnv, agent_of
from duologue.analysis.shift.classifier import require_classifier
from duologue.analysis.shift.config import ShiftConfig
from duologue.analysis.shift.likelihood import ReferenceModel
from duologue.analysis.shift.measure import measure_shift
from duologue.analysis.shift.report import ShiftReport, markdown
from duologue.analysis.shift.sampling import answers_on, replies_on
from duologue.analysis.shift.states import seen_of
from duologue.analysis.summary import EvaluationReport
from duologue.envs.making import named_errors
from duologue.envs.parts import CALL_TIMEOUT
from duologue.envs.tasks.base import TaskSource
from duologue.envs.tasks.lists import TaskList
from duologue.envs.tasks.spec import make_tasks
from duologue.rewards.base import signature_of
from duologue.simulators.base import Simulator
from duologue.simulators.human import HumanUser
from duologue.simulators.logs import LoggedDialogue, read_logs
from duologue.simulators.spec import env_name, make_simulator
from duologue.trainers.agents import Agent
from duologue.types import Task

OnStage = Callable[[str], OnProgress]
"""Called with the name of what begins; returns the function that follows it."""


def shift(config: ShiftConfig, agent: Agent | None = None, on_stage: OnStage | None = None) -> ShiftReport:
    """Measure the shifts of a policy, from nothing but logs, a policy and two users.

    Plays ``config.episodes`` dialogues with each user (the same tasks and user seeds), then samples one reply of the
    policy at each logged context and one answer of the simulator at each history with the human. Writes ``human/`` and
    ``simulated/`` (as ``evaluate``), ``shift.json``, ``table.md`` and, with matplotlib, ``shift.png`` into
    ``config.output``. Called again with the same configuration it plays only what is missing.

    Args:
        config: what to measure.
        agent: plays the assistant; None = the one that ``config.agent`` names.
        on_stage: follows the work.

    Raises:
        DuologueError: if a part cannot be made, the logs are damaged, or the folder holds another measurement.
        MissingExtraError: if scikit-learn is not installed.
    """
    require_classifier()
    logs = _drawn(read_logs(config.logs), config.episodes, config.seed)
    parts = _Parts(config, agent or agent_of(config), _tasks(config, logs), on_stage or (lambda _: _ignored))
    human, simulator = (make_simulator(spec, env_name(config.env)) for spec in (config.human, config.simulator))
    real, simulated = parts.play("human", human), parts.play("simulated", simulator)
    turns = config.max_turns or parts.limit
    seen_logs = [seen_of(log, config.env, parts.tasks.find) for log in logs]
    seen_real = [seen_of(episode, config.env, parts.tasks.find) for episode in real.episodes]
    timeout = None if isinstance(simulator, HumanUser) else CALL_TIMEOUT
    report = measure_shift(
        logs,
        real.episodes,
        simulated.episodes,
        parts.tasks.find,
        turns=turns,
        replies=replies_on(
            parts.agent, seen_logs, turns, config.num_envs, config.seed, parts.follow("logged contexts")
        ),
        answers=answers_on(simulator, seen_real, turns, config.num_envs, timeout, parts.follow("human's histories")),
        reference=ReferenceModel(config.reference) if config.reference else None,
        signatures={"logs": _logs_signature(logs), "human": real.signature, "simulated": simulated.signature},
        notes=_notes(logs, human),
        seed=config.seed,
        on_step=parts.follow("measure"),
    )
    _write(report, config)
    return report


@dataclass(slots=True)
class _Parts:
    """What both evaluations share."""

    config: ShiftConfig
    agent: Agent
    tasks: TaskSource
    on_stage: OnStage
    limit: int = 1
    """Most assistant turns of the environment, known once it was made."""

    def play(self, name: str, user: Simulator) -> EvaluationReport:
        """Play the policy with a user, or go on with it."""
        shared = {f.name for f in fields(EvaluateConfig)} & {f.name for f in fields(ShiftConfig)} - {"output"}
        given = {key: getattr(self.config, key) for key in shared}
        config = EvaluateConfig(**given, output=str(Path(self.config.output) / name))
        return evaluate(config, self.agent, lambda slots: self._env(slots, user), self.on_stage(name))

    def follow(self, name: str) -> Callable[[int, int], None]:
        """Return a follower of a stage without scores."""
        show = self.on_stage(name)
        return lambda done, total: show(done, total, None)

    def _env(self, slots: int, user: Simulator) -> VectorEnv:
        limit = {} if self.config.max_turns is None else {"max_turns": self.config.max_turns}
        given: dict[str, Any] = {"simulator": user, "tasks": self.tasks, **limit}
        with named_errors(self.config.env):
            env = gym.make_vec(self.config.env, num_envs=slots, vectorization_mode="vector_entry_point", **given)
        self.limit = env.unwrapped.parts.dynamics.max_turns  # type: ignore[attr-defined]
        return env


def _ignored(done: int, total: int, score: float | None) -> None:
    """Follow nothing."""


def _drawn(logs: list[LoggedDialogue], most: int, seed: int) -> list[LoggedDialogue]:
    """Return the logs, or so many of them, in their order."""
    if len(logs) <= most:
        return logs
    rows = np.random.default_rng(seed).choice(len(logs), size=most, replace=False)
    return [logs[i] for i in sorted(rows.tolist())]


def _tasks(config: ShiftConfig, logs: Sequence[LoggedDialogue]) -> TaskSource:
    if config.tasks is not None:
        return make_tasks(config.tasks, env_name(config.env))
    found: dict[str, Task] = {log.task.task_id: log.task for log in logs}
    return TaskList(found.values(), name="logs")


def _logs_signature(logs: Sequence[LoggedDialogue]) -> str:
    digest = sha256("".join(log.content_hash for log in logs).encode()).hexdigest()[:12]
    return f"logs(n={len(logs)},sha256={digest})"


def _notes(logs: Sequence[LoggedDialogue], human: Simulator) -> list[str]:
    """Return a warning if logs name a user, and it is not the human."""
    users = {log.source.partition("|agent:")[0] for log in logs if log.source.startswith("user:")}
    others = sorted(users - {f"user:{signature_of(human)}"})
    if not others:
        return []
    return [
        f"The logs' user ({', '.join(others)}) is not the human ({signature_of(human)}): the shifts `policy` and "
        "`both` hold that difference too. Give the logs' user as --human to measure the policy's alone."
    ]


def _write(report: ShiftReport, config: ShiftConfig) -> None:
    folder = Path(config.output)
    row = {**report.to_json(), "config": asdict(config)}
    (folder / "shift.json").write_text(json.dumps(row, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(markdown(report) + "\n", encoding="utf-8")
    if find_spec("matplotlib") is not None:
        from duologue.analysis.shift.pictures import shift_figure

        shift_figure(report, folder / "shift.png")
