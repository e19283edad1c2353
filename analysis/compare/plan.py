"""From a preset to stages: which configuration each has, and which stages it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from duologue.analysis.compare import work
from duologue.analysis.compare.config import ARMS, TRAINED, CompareConfig
from duologue.analysis.compare.explain import ContextShift, measure_contexts
from duologue.analysis.compare.preset import Preset, typed
from duologue.analysis.compare.stages import Stage
from duologue.analysis.config import CollectConfig, EvaluateConfig
from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.config import InteractiveConfig

USERS = ("held_out", "human", "naive", "calibrated")
"""Columns of the matrix. Nobody trains with ``held_out``."""
OWN_USER = {"naive": "naive", "calibrated": "calibrated", "oracle": "human"}
"""The user that an arm trains with; the others have none."""
FITTED = ("naive", "calibrated")
"""Users of training whose fidelity is measured; the others are the humans themselves."""
RL_ARMS = ("static", *OWN_USER)
_LOGS_SEED, _BASE_SEED, _PEOPLE_SEED, _EVALUATION_SEED = 1_001, 1_002, 1_003, 2_000
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy measured with one user."""

    seed: int
    policy: str
    user: str
    step: int | None = None
    """Optimiser step of the checkpoint; None = the end of training."""

    @property
    def name(self) -> str:
        """Return the name of its stage."""
        policy = self.policy if self.step is None else f"{self.policy}@{self.step}"
        return f"seed-{self.seed}/evaluate/{policy}--{self.user}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison, before it runs."""

    preset: Preset
    root: Path
    seeds: int
    stages: tuple[Stage, ...]
    cells: tuple[Cell, ...]
    policies: tuple[str, ...]
    """Rows of the table, in order."""
    skipped: Mapping[str, str]
    """Arms that are left out, with the reason."""
    axis: tuple[Cell, ...] = ()
    """Arms of the preset's axis, each measured with the held-out user and with its ``own``."""
    checkpoints: tuple[Cell, ...] = ()
    """Checkpoints of RL arms before the last, measured with the held-out user."""


def plan(config: CompareConfig, preset: Preset) -> Plan:
    """Plan a comparison; nothing runs.

    Raises:
        DuologueError: if the preset has a field that a stage does not know, or a name of an agent is taken.
    """
    return _Planner(config, preset).plan()


def built(make: type[Made], section: str, values: Mapping[str, Any], ours: Mapping[str, Any]) -> Made:
    """Build a stage's configuration from a section of a preset.

    Args:
        make: the configuration dataclass.
        section: its name, for messages.
        values: what the preset says.
        ours: what the comparison sets itself.

    Raises:
        DuologueError: for a field that is unknown, of a wrong type, or set by the comparison.
    """
    hints, known = get_type_hints(make), {f.name for f in fields(make)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise DuologueError(f"The preset's {section!r} has no field {name!r}. {did_you_mean(name, known)}")
        if name in ours:
            raise DuologueError(f"{section}.{name} is set by the comparison. Leave it out of the preset.")
    given = {name: typed(hints[name], value, f"{section}.{name}") for name, value in values.items()}
    return make(**{**given, **ours})


class _Planner:
    def __init__(self, config: CompareConfig, preset: Preset) -> None:
        self.config, self.preset = config, preset
        self.root = Path(config.output)
        self.stages: list[Stage] = []
        self.cells: list[Cell] = []
        self.agents = _named(config.agent)
        self.arms = [arm for arm in preset.arms if arm not in self.skipped()]

    def plan(self) -> Plan:
        built(InteractiveConfig, "rl", self.preset.rl, self.rl_fields(0, "naive"))  # its mistakes first
        self.shared()
        for seed in range(self.config.seeds):
            self.one_seed(seed)
        baselines = [arm for arm in self.arms if arm not in TRAINED]
        policies = (*baselines, *self.agents, *(arm for arm in self.arms if arm in TRAINED))
        for seed in range(self.config.seeds):
            for policy in policies:
                for user in self.users():
                    self.cell(Cell(seed, policy, user))
        axis = tuple(cell for seed in range(self.config.seeds) for cell in self.axis(seed))
        checkpoints = tuple(cell for seed in range(self.config.seeds) for cell in self.checkpoints(seed))
        for seed in range(self.config.seeds):
            self.explain(seed)
        self.fidelity()
        stages, cells = tuple(self.stages), tuple(self.cells)
        return Plan(
            self.preset, self.root, self.config.seeds, stages, cells, policies, self.skipped(), axis, checkpoints
        )

    def skipped(self) -> dict[str, str]:
        if "proactive" in self.preset.arms and self.preset.base.method == "scratch":
            return {"proactive": "the base is trained from scratch on dialogues and follows no instructions"}
        return {}

    def users(self) -> tuple[str, ...]:
        return tuple(user for user in USERS if user != "calibrated" or "calibrated" in self.arms)

    def add(
        self,
        name: str,
        config: Any,
        run: Callable[[Any], dict[str, Any]],
        needs: tuple[str, ...] = (),
        resumes: bool = False,
    ) -> None:
        self.stages.append(Stage(name, config, partial(run, config), needs, resumes))

    def path(self, *parts: str) -> str:
        return str(self.root.joinpath(*parts))

    @property
    def base(self) -> str:
        return self.preset.base.model if self.preset.base.method == "model" else self.path("base", "model")

    @property
    def after_base(self) -> tuple[str, ...]:
        return () if self.preset.base.method == "model" else ("base",)

    def shared(self) -> None:
        logs = self.preset.logs
        if any(arm in self.arms for arm in ("clone", "static", "calibrated")):
            self.collect("logs", logs.agent, logs.episodes, _LOGS_SEED)
        if self.preset.base.method != "model":
            self.collect("base-logs", self.preset.base.agent or logs.agent, self.preset.base.episodes, _BASE_SEED)
            self.make_base()

    def collect(self, name: str, agent: str, episodes: int, seed: int) -> None:
        ours = self.dialogues_with(self.preset.users.human, self.preset.tasks.train)
        output = self.path(name, "logs.jsonl")
        config = CollectConfig(**ours, agent=agent, episodes=episodes, seed=seed, output=output)
        self.add(name, config, work.collect_logs, resumes=True)

    def make_base(self) -> None:
        base, output = self.preset.base, self.path("base", "model")
        ours: dict[str, Any] = {"dialogues": self.path("base-logs", "logs.jsonl"), "output": output}
        if base.method == "scratch":
            from duologue.trainers.scratch import ScratchConfig

            ours["env"] = self.preset.env
            self.add("base", built(ScratchConfig, "base.settings", base.settings, ours), work.pretrain, ("base-logs",))
        elif base.method == "clone":
            self.add_clone("base", "base.settings", base.settings, ours, base.model, 0, ("base-logs",))
        else:
            known = ("model", "clone", "scratch")
            raise DuologueError(f"base.method is {base.method!r}. {did_you_mean(base.method, known)}")

    def one_seed(self, seed: int) -> None:
        folder = f"seed-{seed}"
        logs = self.path("logs", "logs.jsonl")
        if "clone" in self.arms:
            ours = {"dialogues": logs, "output": self.path(folder, "clone", "model")}
            needs = (*self.after_base, "logs")
            self.add_clone(f"{folder}/clone", "clone", self.preset.clone, ours, self.base, seed, needs)
        if "static" in self.arms:
            self.add_static(seed, logs)
        if "calibrated" in self.arms:
            self.add_user(seed, logs)
        for arm in (arm for arm in OWN_USER if arm in self.arms):
            needs = (*self.after_base, *((f"{folder}/user",) if arm == "calibrated" else ()))
            config = built(InteractiveConfig, "rl", self.preset.rl, self.rl_fields(seed, arm))
            self.add(f"{folder}/{arm}", config, work.train_interactive, needs, resumes=True)

    def add_clone(
        self,
        name: str,
        section: str,
        values: Mapping[str, Any],
        ours: Mapping[str, Any],
        model: str,
        seed: int,
        needs: tuple[str, ...],
    ) -> None:
        from duologue.trainers.cloning_config import CloningConfig

        fixed = {**ours, "model": model, "seed": seed, "system_prompt": self.preset.system_prompt}
        self.add(name, built(CloningConfig, section, values, fixed), work.clone_logs, needs)

    def add_static(self, seed: int, logs: str) -> None:
        from duologue.trainers.static_config import StaticConfig

        values = {**self.preset.rl, **self.preset.static}
        ours = {**self.rl_fields(seed, "static"), "dialogues": logs, "tasks": None}  # the logs bring their tasks
        config = built(StaticConfig, "static", values, ours)
        matched = "groups_per_step" not in self.preset.static
        run = partial(work.train_static, config, matched)
        self.stages.append(Stage(f"seed-{seed}/static", config, run, (*self.after_base, "logs"), resumes=True))

    def add_user(self, seed: int, logs: str) -> None:
        from duologue.trainers.calibration_config import CalibrateConfig

        values = {"model": self.base, **self.preset.calibrate}
        output = self.path(f"seed-{seed}", "user", "model")
        ours = {"env": self.preset.env, "dialogues": logs, "output": output, "seed": seed}
        config = built(CalibrateConfig, "calibrate", values, ours)
        self.add(f"seed-{seed}/user", config, work.calibrate_user, (*self.after_base, "logs"))

    def rl_fields(self, seed: int, arm: str) -> dict[str, Any]:
        """Return the fields of an RL arm that the comparison sets: all but the user is the same for all arms."""
        limits = self.preset.limits
        return {
            "env": self.preset.env,
            "simulator": self.user(seed, OWN_USER.get(arm, "human")),
            "tasks": self.preset.tasks.train,
            "max_turns": limits.max_turns if arm != "static" else 1,
            "max_tokens_per_turn": limits.max_tokens_per_turn,
            "max_total_tokens": limits.max_total_tokens,
            "model": self.base,
            "system_prompt": self.preset.system_prompt,
            "output": self.path(f"seed-{seed}", arm),
            "seed": seed,
            "resume": True,
        }

    def dialogues_with(self, user: str, tasks: str) -> dict[str, Any]:
        limits = self.preset.limits
        return {
            "env": self.preset.env,
            "simulator": user,
            "tasks": tasks,
            "num_envs": self.preset.evaluate.num_envs,
            "max_turns": limits.max_turns,
            "max_tokens_per_turn": limits.max_tokens_per_turn,
            "max_total_tokens": limits.max_total_tokens,
        }

    def user(self, seed: int, user: str) -> str:
        if user == "calibrated":
            return f"calibrated:{self.path(f'seed-{seed}', 'user', 'model')}"
        return str(getattr(self.preset.users, user))

    def policy(self, cell: Cell) -> tuple[str, str | None, tuple[str, ...]]:
        """Return what plays a cell: spec, system prompt, and the stages that make it."""
        prompt = self.preset.system_prompt
        if cell.policy in self.agents:
            return self.agents[cell.policy], None, ()
        if cell.policy in ("base", "proactive"):
            return self.base, prompt if cell.policy == "base" else _proactive(self.preset), self.after_base
        part = "model" if cell.policy == "clone" else "final" if cell.step is None else f"checkpoint-{cell.step}"
        made = f"seed-{cell.seed}/{cell.policy}"
        return self.path(made, part), prompt, (made,)

    def axis(self, seed: int) -> list[Cell]:
        """Add the arms of the axis and their measurements."""
        axis, made = self.preset.axis, list[Cell]()
        if axis is None:
            return made
        for value in axis.values:
            policy, user = axis_arm(value), axis.user_at(value)
            config = built(InteractiveConfig, "rl", self.preset.rl, {**self.rl_fields(seed, policy), "simulator": user})
            self.add(f"seed-{seed}/{policy}", config, work.train_interactive, self.after_base, resumes=True)
            for name, spec in (("held_out", self.preset.users.held_out), ("own", user)):
                made.append(Cell(seed, policy, name))
                self.measure(made[-1], spec)
        return made

    def explain(self, seed: int) -> None:
        """Add the measurements of how far each trained arm's contexts of training are from those that it meets."""
        limits, tasks = self.preset.limits, self.preset.tasks.test
        for arm in (arm for arm in TRAINED if arm in self.arms):
            own, met = OWN_USER.get(arm), Cell(seed, arm, "held_out")
            played = Cell(seed, arm, own) if own else None
            config = ContextShift(
                env=self.preset.env,
                tasks=tasks,
                met=self.path(met.name),
                own=self.path(played.name) if played else None,
                logs=None if own else self.path("logs", "logs.jsonl"),
                dialogues=self.preset.evaluate.dialogues,
                turns=limits.max_turns,
            )
            self.add(shift_stage(seed, arm), config, measure_contexts, (met.name, played.name if played else "logs"))

    def fidelity(self) -> None:
        """Add the measurements of how human the users of training are, beside dialogues that nobody was trained on."""
        from duologue.analysis.fidelity.config import FidelityConfig

        users = [user for user in FITTED if user in self.arms]
        count = self.preset.evaluate.fidelity_dialogues
        if not users or not count:
            return
        self.collect("people", self.preset.logs.agent, 2 * count, _PEOPLE_SEED)
        for seed in range(self.config.seeds):
            for user in users:
                config = FidelityConfig(
                    env=self.preset.env,
                    dialogues=self.path("people", "logs.jsonl"),
                    simulators=(self.user(seed, user),),
                    agent=self.preset.logs.agent,
                    dialogues_per_simulator=count,
                    seed=seed,
                    output=self.path(f"seed-{seed}", "fidelity", user),
                )
                needs = ("people", *((f"seed-{seed}/user",) if user == "calibrated" else ()))
                self.add(f"seed-{seed}/fidelity/{user}", config, work.measure_fidelity, needs, resumes=True)

    def checkpoints(self, seed: int) -> list[Cell]:
        """Add the measurements of checkpoints, which the arms then have to keep."""
        rl, dialogues = self.preset.rl, self.preset.evaluate.checkpoint_dialogues
        if not dialogues:
            return []
        every = int(rl.get("save_steps", 0))
        if not every or "save_total_limit" in rl.get("trl", {}):
            raise DuologueError(
                "evaluate.checkpoint_dialogues needs checkpoints that are kept. Set rl.save_steps above 0, and leave "
                "save_total_limit out of rl.trl."
            )
        steps = range(every, int(rl["steps"]), every)
        made = [Cell(seed, arm, "held_out", step) for arm in RL_ARMS if arm in self.arms for step in steps]
        for cell in made:
            self.measure(cell, self.preset.users.held_out, dialogues)
        return made

    def cell(self, cell: Cell) -> None:
        self.cells.append(cell)
        self.measure(cell, self.user(cell.seed, cell.user))

    def measure(self, cell: Cell, user: str, dialogues: int | None = None) -> None:
        spec, prompt, needs = self.policy(cell)
        evaluation = self.preset.evaluate
        usual = evaluation.dialogues if cell.user == "held_out" else evaluation.other_dialogues
        config = EvaluateConfig(
            **self.dialogues_with(user, self.preset.tasks.test),
            agent=spec,
            system_prompt=prompt,
            episodes=dialogues or usual,
            temperature=evaluation.temperature,
            seed=_EVALUATION_SEED + cell.seed,
            output=self.path(cell.name),
        )
        needs = (*needs, *((f"seed-{cell.seed}/user",) if cell.user == "calibrated" else ()))
        self.add(cell.name, config, work.measure, needs, resumes=True)


def axis_arm(value: float) -> str:
    """Return the name of the arm at a value of the axis."""
    return f"axis/{value:g}"


def shift_stage(seed: int, arm: str) -> str:
    """Return the name of the stage that measures an arm's shift."""
    return f"seed-{seed}/shift/{arm}"


def _proactive(preset: Preset) -> str:
    from duologue.trainers.proactive import PROACTIVE_PROMPTS

    return "\n\n".join(filter(None, [preset.system_prompt, PROACTIVE_PROMPTS[preset.env]]))


def _named(agents: Mapping[str, Any]) -> dict[str, str]:
    """Return further agents by name, checked."""
    from duologue.trainers.named_agents import parse_named_agents

    return parse_named_agents([f"{name}={spec}" for name, spec in agents.items()], reserved=ARMS)
