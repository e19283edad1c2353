"""What is planned: a training run, the shape of its model, its machine, and how long its dialogues are."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from duologue.analysis.plan.lengths import Lengths, expected, longest
from duologue.analysis.plan.shape import Machine, Shape, bytes_per_number
from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.calibration_config import CalibratedConfig
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.static_config import StaticConfig
from duologue.types import Episode

METHODS: dict[str, type[InteractiveConfig]] = {
    "interactive": InteractiveConfig,
    "static": StaticConfig,
    "calibrated": CalibratedConfig,
}
"""Configurations of ``duologue train``, by its commands."""
_ARMS = {"interactive": "naive", "static": "static", "calibrated": "calibrated"}
"""The arm of a comparison that trains so."""
_OURS = ("method", "machine", "shape", "user_shape")
"""Keys of a file that training does not know."""


@dataclass(frozen=True, slots=True)
class Run:
    """A training run on paper."""

    config: InteractiveConfig
    shape: Shape
    user: Shape | None
    """The user's model; None = it costs nothing."""
    machine: Machine
    lengths: Lengths
    source: str
    """Where the lengths come from."""

    @property
    def width(self) -> int:
        """Return the bytes of a weight."""
        return bytes_per_number(self.config.dtype, self.machine)

    @property
    def gpu(self) -> bool:
        """Return True if training runs on GPUs."""
        return self.machine.gpus > 0

    @property
    def passes(self) -> int:
        """Return the forward and backward passes of a step, on all GPUs."""
        return self.config.episodes_per_step // self.config.micro_batch_size


def run_of_file(
    rows: Mapping[str, Any], given: Mapping[str, Any] | None = None, episodes: Sequence[Episode] | None = None
) -> Run:
    """Plan the run of a configuration of ``duologue train``.

    Args:
        rows: its fields, and perhaps ``method`` and the sections ``machine``, ``shape`` and ``user_shape``.
        given: the same four again, with values that win.
        episodes: dialogues of an earlier run, whose lengths are expected; None = the limits are.

    Raises:
        DuologueError: for an unknown key, a wrong value, or a machine or model that is not described.
    """
    from duologue.analysis.compare.preset import from_mapping

    given = given or {}
    method = str(given.get("method") or rows.get("method") or "interactive")
    if method not in METHODS:
        raise DuologueError(f"There is no method {method!r}. {did_you_mean(method, METHODS)}")
    fields = {name: value for name, value in rows.items() if name not in _OURS}
    config = from_mapping(METHODS[method], fields, "the configuration")
    sections = {name: _section(name, rows, given) for name in _OURS[1:]}
    if not sections["machine"]:
        raise DuologueError("The machine is not described. Give --machine gpus=8 --machine memory_gb=80, and tflops.")
    return _run(
        config,
        _shape(config, sections["shape"]),
        from_mapping(Shape, sections["user_shape"], "user_shape") if sections["user_shape"] else None,
        from_mapping(Machine, sections["machine"], "machine"),
        episodes,
    )


def run_of_preset(
    env: str, preset: str, given: Mapping[str, Any] | None = None, episodes: Sequence[Episode] | None = None
) -> Run:
    """Plan an arm of ``duologue compare``: naive for ``interactive``, else the one of the method's name.

    Args:
        env: environment of the comparison.
        preset: its size, or a YAML file.
        given: ``method``, and changes to the preset's ``machine``, ``shape`` and ``user_shape``.
        episodes: as in ``run_of_file``.

    Raises:
        DuologueError: for a preset that cannot be planned, or one without that arm.
    """
    from duologue.analysis.compare.config import CompareConfig
    from duologue.analysis.compare.preset import from_mapping
    from duologue.analysis.compare.run import planned

    made, given = planned(CompareConfig(env=env, preset=preset)), given or {}
    arm = _ARMS.get(str(given.get("method") or "interactive"))
    configs = {stage.name: stage.config for stage in made.stages}
    if (name := f"seed-0/{arm}") not in configs:
        raise DuologueError(f"The preset {preset!r} has no arm of that method. Choose one of {', '.join(METHODS)}.")
    rows = {"machine": asdict(made.preset.machine), "shape": asdict(made.preset.policy)}
    rows["user_shape"] = asdict(made.preset.user) if made.preset.user else {}
    user = _section("user_shape", rows, given)
    return _run(
        configs[name],
        from_mapping(Shape, _section("shape", rows, given), "shape"),
        from_mapping(Shape, user, "user_shape") if user else None,
        from_mapping(Machine, _section("machine", rows, given), "machine"),
        episodes,
    )


def _run(
    config: InteractiveConfig, shape: Shape, user: Shape | None, machine: Machine, episodes: Sequence[Episode] | None
) -> Run:
    size = config.episodes_per_step, config.group_size
    if episodes is not None:
        return Run(config, shape, user, machine, expected(*size, episodes), f"means of {len(episodes)} dialogues")
    turns = config.max_turns or _most_turns(config.env)
    limits = longest(*size, turns, config.max_tokens_per_turn, config.max_total_tokens)
    return Run(config, shape, user, machine, limits, "at most, from the limits")


def _section(name: str, rows: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    section = rows.get(name) or {}
    if not isinstance(section, Mapping):
        raise DuologueError(f"{name} holds {section!r:.40}, not keys and values. Write lines like 'gpus: 8' under it.")
    return {**section, **(given.get(name) or {})}


def _shape(config: InteractiveConfig, section: Mapping[str, Any]) -> Shape:
    """Return the shape that is given by hand, or the model's own."""
    from duologue.analysis.compare.preset import from_mapping

    if section:
        return from_mapping(Shape, section, "shape")
    from duologue.analysis.plan.model import shape_of

    return shape_of(config.model, config)


def _most_turns(env: str) -> int:
    """Return an environment's own ``max_turns``."""
    import gymnasium as gym
    from gymnasium.envs.registration import load_env_creator

    import duologue.envs  # noqa: F401  (registers the environments)
    from duologue.envs.making import named_errors

    with named_errors(env):
        spec = gym.spec(env)
    maker: Any = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    turns = spec.kwargs.get("max_turns") or getattr(inspect.signature(maker).parameters.get("max_turns"), "default", 0)
    if not isinstance(turns, int) or turns < 1:
        raise DuologueError(f"{env} does not say how many turns it allows. Set max_turns.")
    return turns
