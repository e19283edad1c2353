"""The stages that make things: logs, base, users, and an arm's training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from duologue.analysis.compare import work
from duologue.analysis.compare.cells import OWN_USER, TRAINED_WITH, USERS, axis_arm
from duologue.analysis.compare.config import CompareConfig
from duologue.analysis.compare.preset import Preset, typed
from duologue.analysis.compare.stages import Stage
from duologue.analysis.config import CollectConfig
from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.config import InteractiveConfig

_LOGS_SEED, _BASE_SEED = 1_001, 1_002
_AS_RL = ("learning_rate", "temperature", "lora_rank", "lora_top_layers", "dtype")
"""Fields of ``dpo`` that are those of ``rl``, unless the preset says otherwise."""
Made = TypeVar("Made")


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


class Training:
    """Plans what is made, stage by stage, into ``stages``.

    Args:
        config: what a person sets.
        preset: the rest.
    """

    def __init__(self, config: CompareConfig, preset: Preset) -> None:
        self.config, self.preset = config, preset
        self.root = Path(config.output)
        self.stages: list[Stage] = []
        self.arms = [arm for arm in preset.arms if arm not in self.skipped()]

    def everything(self) -> None:
        """Plan all stages of all seeds."""
        built(InteractiveConfig, "rl", self.preset.rl, self._rl_fields(0, "naive"))  # its mistakes first
        self._shared()
        for seed in range(self.config.seeds):
            self._one_seed(seed)
        for seed in range(self.config.seeds):
            self._axis(seed)

    def skipped(self) -> dict[str, str]:
        """Return the arms that are left out, with the reason."""
        if "proactive" in self.preset.arms and self.preset.base.method == "scratch":
            return {"proactive": "the base is trained from scratch on dialogues and follows no instructions"}
        return {}

    def users(self) -> tuple[str, ...]:
        """Return the columns of the matrix."""
        return tuple(user for user in USERS if user != "calibrated" or "calibrated" in self.arms)

    def add(
        self,
        name: str,
        config: Any,
        run: Callable[[Any], dict[str, Any]],
        needs: tuple[str, ...] = (),
        resumes: bool = False,
    ) -> None:
        """Plan a stage (see ``Stage``)."""
        self.stages.append(Stage(name, config, partial(run, config), needs, resumes))

    def path(self, *parts: str) -> str:
        """Return a path under the output folder."""
        return str(self.root.joinpath(*parts))

    @property
    def base(self) -> str:
        """Return the model that all arms start from."""
        return self.preset.base.model if self.preset.base.method == "model" else self.path("base", "model")

    @property
    def after_base(self) -> tuple[str, ...]:
        """Return the stages that make the base."""
        return () if self.preset.base.method == "model" else ("base",)

    def _shared(self) -> None:
        logs = self.preset.logs
        if any(arm in self.arms for arm in ("clone", "static", "dpo", "calibrated")):
            self.collect("logs", logs.agent, logs.episodes, _LOGS_SEED)
        if self.preset.base.method != "model":
            self.collect("base-logs", self.preset.base.agent or logs.agent, self.preset.base.episodes, _BASE_SEED)
            self._make_base()

    def collect(self, name: str, agent: str, episodes: int, seed: int) -> None:
        """Plan dialogues of the proxy human with an assistant, on training tasks."""
        ours = self.dialogues_with(self.preset.users.human, self.preset.tasks.train)
        output = self.path(name, "logs.jsonl")
        config = CollectConfig(**ours, agent=agent, episodes=episodes, seed=seed, output=output)
        self.add(name, config, work.collect_logs, resumes=True)

    def _make_base(self) -> None:
        base, output = self.preset.base, self.path("base", "model")
        ours: dict[str, Any] = {"dialogues": self.path("base-logs", "logs.jsonl"), "output": output}
        if base.method == "scratch":
            from duologue.trainers.scratch import ScratchConfig

            ours["env"] = self.preset.env
            self.add("base", built(ScratchConfig, "base.settings", base.settings, ours), work.pretrain, ("base-logs",))
        elif base.method == "clone":
            self._add_clone("base", "base.settings", base.settings, ours, base.model, 0, ("base-logs",))
        else:
            known = ("model", "clone", "scratch")
            raise DuologueError(f"base.method is {base.method!r}. {did_you_mean(base.method, known)}")

    def _one_seed(self, seed: int) -> None:
        folder = f"seed-{seed}"
        logs = self.path("logs", "logs.jsonl")
        if "clone" in self.arms:
            ours = {"dialogues": logs, "output": self.path(folder, "clone", "model")}
            needs = (*self.after_base, "logs")
            self._add_clone(f"{folder}/clone", "clone", self.preset.clone, ours, self.base, seed, needs)
        if "static" in self.arms:
            self._add_static(seed, logs)
        if "dpo" in self.arms:
            self._add_dpo(seed, logs)
        if "calibrated" in self.arms:
            self._add_user(seed, logs)
        for arm in (arm for arm in OWN_USER if arm in self.arms):
            needs = (*self.after_base, *((f"{folder}/user",) if arm == "calibrated" else ()))
            config = built(InteractiveConfig, "rl", self.preset.rl, self._rl_fields(seed, arm))
            self.add(f"{folder}/{arm}", config, work.train_interactive, needs, resumes=True)

    def _add_clone(
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

    def _add_static(self, seed: int, logs: str) -> None:
        from duologue.trainers.static_config import StaticConfig

        values = {**self.preset.rl, **self.preset.static}
        ours = {**self._rl_fields(seed, "static"), "dialogues": logs, "tasks": None}  # the logs bring their tasks
        config = built(StaticConfig, "static", values, ours)
        matched = "groups_per_step" not in self.preset.static
        run = partial(work.train_static, config, matched)
        self.stages.append(Stage(f"seed-{seed}/static", config, run, (*self.after_base, "logs"), resumes=True))

    def _add_dpo(self, seed: int, logs: str) -> None:
        from duologue.trainers.dpo_config import DpoConfig

        known = {f.name for f in fields(DpoConfig)}
        fixed = {name: value for name, value in self._rl_fields(seed, "dpo").items() if name in known}
        user = self.user(seed, TRAINED_WITH["dpo"])
        ours = {**fixed, "dialogues": logs, "simulator": user, "num_envs": self.preset.evaluate.num_envs}
        rl = built(InteractiveConfig, "rl", self.preset.rl, self._rl_fields(seed, "naive"))
        shared = {name: getattr(rl, name) for name in _AS_RL}
        config = built(DpoConfig, "dpo", {**shared, **self.preset.dpo}, ours)
        if config.max_contexts is None:  # as many dialogues as an RL arm plays
            played = rl.steps * rl.episodes_per_step
            config = replace(config, max_contexts=max(1, round(played / (config.replies * config.continuations))))
        self.add(f"seed-{seed}/dpo", config, work.train_dpo, (*self.after_base, "logs"), resumes=True)

    def _add_user(self, seed: int, logs: str) -> None:
        from duologue.trainers.calibration_config import CalibrateConfig

        values = {"model": self.base, **self.preset.calibrate}
        output = self.path(f"seed-{seed}", "user", "model")
        ours = {"env": self.preset.env, "dialogues": logs, "output": output, "seed": seed}
        config = built(CalibrateConfig, "calibrate", values, ours)
        self.add(f"seed-{seed}/user", config, work.calibrate_user, (*self.after_base, "logs"))

    def _rl_fields(self, seed: int, arm: str) -> dict[str, Any]:
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
        """Return the fields of a configuration that plays dialogues."""
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
        """Return the spec of a user by its role, or by the arm of the axis that trains with it."""
        if user == "calibrated":
            return f"calibrated:{self.path(f'seed-{seed}', 'user', 'model')}"
        axis = self.preset.axis
        along = {axis_arm(value): axis.user_at(value) for value in axis.values} if axis else {}
        return along.get(user) or str(getattr(self.preset.users, user))

    def _axis(self, seed: int) -> None:
        """Plan the arms of the axis: they differ in their user alone."""
        axis = self.preset.axis
        for value in axis.values if axis else ():
            ours = {**self._rl_fields(seed, axis_arm(value)), "simulator": self.user(seed, axis_arm(value))}
            config = built(InteractiveConfig, "rl", self.preset.rl, ours)
            self.add(f"seed-{seed}/{axis_arm(value)}", config, work.train_interactive, self.after_base, resumes=True)
