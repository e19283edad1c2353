"""The stages that measure: every policy with every user, checkpoints, the axis, shift and fidelity."""

from __future__ import annotations

from collections.abc import Mapping

from duologue.analysis.compare import work
from duologue.analysis.compare.cells import FITTED, OWN_USER, RL_ARMS, Cell, axis_arm, shift_stage
from duologue.analysis.compare.config import TRAINED
from duologue.analysis.compare.explain import ContextShift, measure_contexts
from duologue.analysis.compare.preset import Preset
from duologue.analysis.compare.training import Training
from duologue.analysis.config import EvaluateConfig
from duologue.errors import DuologueError

_PEOPLE_SEED, _EVALUATION_SEED = 1_003, 2_000


class Measuring:
    """Plans measurements of what ``made`` makes, after its stages.

    Args:
        made: the training, planned.
        agents: further agents, as specs by name.
    """

    def __init__(self, made: Training, agents: Mapping[str, str]) -> None:
        self.made, self.agents = made, agents
        self.preset, self.arms, self.seeds = made.preset, made.arms, range(made.config.seeds)

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the rows of the table, in order."""
        baselines = [arm for arm in self.arms if arm not in TRAINED]
        return (*baselines, *self.agents, *(arm for arm in self.arms if arm in TRAINED))

    def cells(self) -> tuple[Cell, ...]:
        """Measure every policy with every user."""
        users = self.made.users()
        return self._all(
            [Cell(seed, policy, user) for seed in self.seeds for policy in self.policies for user in users]
        )

    def axis(self) -> tuple[Cell, ...]:
        """Measure the arms of the axis with the held-out user and with their own."""
        values = self.preset.axis.values if self.preset.axis else ()
        arms = [axis_arm(value) for value in values]
        rows = [(seed, arm) for seed in self.seeds for arm in arms]
        return self._all([Cell(*row, user) for row in rows for user in ("held_out", "own")])

    def checkpoints(self) -> tuple[Cell, ...]:
        """Add the measurements of checkpoints, which the arms then have to keep."""
        rl, dialogues = self.preset.rl, self.preset.evaluate.checkpoint_dialogues
        if not dialogues:
            return ()
        every = int(rl.get("save_steps", 0))
        if not every or "save_total_limit" in rl.get("trl", {}):
            raise DuologueError(
                "evaluate.checkpoint_dialogues needs checkpoints that are kept. Set rl.save_steps above 0, and leave "
                "save_total_limit out of rl.trl."
            )
        steps = range(every, int(rl["steps"]), every)
        arms = [arm for arm in RL_ARMS if arm in self.arms]
        return self._all([Cell(seed, arm, "held_out", step) for seed in self.seeds for arm in arms for step in steps])

    def shifts(self) -> None:
        """Measure how far each trained arm's contexts of training are from those that it meets."""
        for seed in self.seeds:
            for arm in (arm for arm in TRAINED if arm in self.arms):
                self._shift(seed, arm)

    def _shift(self, seed: int, arm: str) -> None:
        own, met = OWN_USER.get(arm), Cell(seed, arm, "held_out").name
        side = Cell(seed, arm, own).name if own else "logs"
        config = ContextShift(
            env=self.preset.env,
            tasks=self.preset.tasks.test,
            met=self.made.path(met),
            own=self.made.path(side) if own else None,
            logs=None if own else self.made.path("logs", "logs.jsonl"),
            dialogues=self.preset.evaluate.dialogues,
            turns=self.preset.limits.max_turns,
        )
        self.made.add(shift_stage(seed, arm), config, measure_contexts, (met, side))

    def fidelity(self) -> None:
        """Measure how human the users of training are, beside dialogues that nobody was trained on."""
        users, count = [user for user in FITTED if user in self.arms], self.preset.evaluate.fidelity_dialogues
        if not users or not count:
            return
        self.made.collect("people", self.preset.logs.agent, 2 * count, _PEOPLE_SEED)
        for seed in self.seeds:
            for user in users:
                self._fidelity(seed, user)

    def _fidelity(self, seed: int, user: str) -> None:
        from duologue.analysis.fidelity.config import FidelityConfig

        config = FidelityConfig(
            env=self.preset.env,
            dialogues=self.made.path("people", "logs.jsonl"),
            simulators=(self.made.user(seed, user),),
            agent=self.preset.logs.agent,
            dialogues_per_simulator=self.preset.evaluate.fidelity_dialogues,
            seed=seed,
            output=self.made.path(f"seed-{seed}", "fidelity", user),
        )
        needs = ("people", *_makes(seed, user))
        self.made.add(f"seed-{seed}/fidelity/{user}", config, work.measure_fidelity, needs, resumes=True)

    def _all(self, cells: list[Cell]) -> tuple[Cell, ...]:
        for cell in cells:
            self._measure(cell)
        return tuple(cells)

    def _measure(self, cell: Cell) -> None:
        spec, prompt, needs = self._policy(cell)
        user = self.made.user(cell.seed, cell.policy if cell.user == "own" else cell.user)
        config = EvaluateConfig(
            **self.made.dialogues_with(user, self.preset.tasks.test),
            agent=spec,
            system_prompt=prompt,
            episodes=self._dialogues(cell),
            temperature=self.preset.evaluate.temperature,
            seed=_EVALUATION_SEED + cell.seed,
            output=self.made.path(cell.name),
        )
        self.made.add(cell.name, config, work.measure, (*needs, *_makes(cell.seed, cell.user)), resumes=True)

    def _dialogues(self, cell: Cell) -> int:
        evaluate = self.preset.evaluate
        if cell.step is not None:
            return evaluate.checkpoint_dialogues
        return evaluate.dialogues if cell.user == "held_out" else evaluate.other_dialogues

    def _policy(self, cell: Cell) -> tuple[str, str | None, tuple[str, ...]]:
        """Return what plays a cell: spec, system prompt, and the stages that make it."""
        prompt, made = self.preset.system_prompt, self.made
        if cell.policy in self.agents:
            return self.agents[cell.policy], None, ()
        if cell.policy in ("base", "proactive"):
            return made.base, prompt if cell.policy == "base" else _proactive(self.preset), made.after_base
        part = "model" if cell.policy == "clone" else "final" if cell.step is None else f"checkpoint-{cell.step}"
        trained = f"seed-{cell.seed}/{cell.policy}"
        return made.path(trained, part), prompt, (trained,)


def _makes(seed: int, user: str) -> tuple[str, ...]:
    """Return the stages that make a user."""
    return (f"seed-{seed}/user",) if user == "calibrated" else ()


def _proactive(preset: Preset) -> str:
    from duologue.trainers.proactive import PROACTIVE_PROMPTS

    return "\n\n".join(filter(None, [preset.system_prompt, PROACTIVE_PROMPTS[preset.env]]))
