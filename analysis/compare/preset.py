"""Presets: everything about a comparison but its seeds, in a YAML file per size and environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from duologue.analysis.compare.config import USUAL_ARMS, CompareConfig, checked_arms
from duologue.analysis.plan.shape import Machine, Shape
from duologue.errors import DuologueError, did_you_mean
from duologue.values import checked_value, plain_type

SIZES = ("tiny", "small", "paper")
_FOLDER = Path(__file__).parent / "presets"
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Tasks:
    """Task sources."""

    train: str
    """Tasks of the logs and of all training."""
    test: str
    """Tasks of all evaluation."""


@dataclass(frozen=True, slots=True)
class Users:
    """Who plays the user."""

    human: str
    """The proxy human: speaks in the logs, and trains the oracle arm."""
    held_out: str
    """The proxy human with habits and phrases that no training saw: the judge of every policy."""
    naive: str
    """A user that was never fitted to humans: trains the naive arm."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard caps, the same for all arms in training and evaluation."""

    max_turns: int
    max_tokens_per_turn: int
    max_total_tokens: int


@dataclass(frozen=True, slots=True)
class Logs:
    """The dialogues that stand for human logs."""

    agent: str
    """The assistant in them."""
    episodes: int


@dataclass(frozen=True, slots=True)
class Base:
    """The model that every arm starts from."""

    method: str
    """``model`` (as it is), ``clone`` (warm-started on a few logs) or ``scratch`` (trained from scratch on logs)."""
    model: str = "default"
    """The model for ``model`` and ``clone``."""
    episodes: int = 0
    """Dialogues that it learns from: of their own, not those of the logs."""
    agent: str | None = None
    """The assistant in them; None = that of the logs."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Fields of ``CloningConfig`` or ``ScratchConfig``."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How policies are measured."""

    dialogues: int
    """Per policy, seed and held-out user."""
    other_dialogues: int
    """The same for the other users."""
    num_envs: int = 32
    temperature: float = 1.0
    checkpoint_dialogues: int = 0
    """The same for the checkpoints of RL arms before the last, with held-out users; 0 = they are not measured."""
    fidelity_dialogues: int = 50
    """People's dialogues, twice, that the naive and the calibrated user are compared with; 0 = they are not."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The simulator-induced shift as an axis: one more RL arm per value, each with a user of its own."""

    label: str
    """What the values are, for the figure: "leak rate"."""
    user: str
    """User of an arm, with ``{}`` where the value goes: ``scripted:naive,leak={}``."""
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that the values can tell users apart.

        Raises:
            DuologueError: if the user does not depend on the value, or there are no different values.
        """
        if "{}" not in self.user:
            raise DuologueError(
                f"axis.user is {self.user!r}. Write {{}} where the value goes: scripted:naive,leak={{}}."
            )
        if not self.values or len(set(self.values)) < len(self.values):
            raise DuologueError(f"axis.values are {list(self.values)}. Give different numbers.")

    def user_at(self, value: float) -> str:
        """Return the spec of the user at a value."""
        return self.user.replace("{}", f"{value:g}")


@dataclass(frozen=True, slots=True)
class Preset:
    """One size of the comparison in one environment."""

    env: str
    about: str
    """What it is for, in a sentence."""
    tasks: Tasks
    users: Users
    limits: Limits
    logs: Logs
    base: Base
    rl: dict[str, Any]
    """Fields of ``InteractiveConfig``, shared by static, naive, calibrated and oracle."""
    evaluate: Evaluation
    policy: Shape
    machine: Machine
    clone: dict[str, Any] = field(default_factory=dict)
    """Fields of ``CloningConfig``."""
    calibrate: dict[str, Any] = field(default_factory=dict)
    """Fields of ``CalibrateConfig``; the model is the base, unless it names another."""
    static: dict[str, Any] = field(default_factory=dict)
    """Fields of ``StaticConfig`` that differ from ``rl``; without ``groups_per_step`` tokens per step are matched."""
    dpo: dict[str, Any] = field(default_factory=dict)
    """Fields of ``DpoConfig`` that differ from ``rl``; without ``max_contexts`` as many dialogues as an RL arm's."""
    user: Shape | None = None
    """The user's model, where it is another one than the policy's."""
    system_prompt: str | None = None
    arms: tuple[str, ...] = USUAL_ARMS
    axis: Axis | None = None
    """Further arms, whose users differ in one number."""


def load_preset(config: CompareConfig) -> Preset:
    """Read the preset that a configuration names, with the configuration's changes.

    Raises:
        DuologueError: if there is none, a key is unknown or missing, or a value has a wrong type.
    """
    import yaml

    path = _path(config)
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DuologueError(f"{str(path)!r} is no YAML: {error}. Start from a copy of a shipped preset.") from error
    preset = from_mapping(Preset, rows, path.name)
    if preset.env != config.env_name:
        raise DuologueError(f"The preset {path.name} is for {preset.env}, not {config.env_name}. Choose one of both.")
    return _changed(preset, config)


def from_mapping(make: type[Made], values: object, where: str) -> Made:
    """Build a dataclass, and those inside it, from what YAML holds.

    Raises:
        DuologueError: for an unknown or missing key, or a value of a wrong type; the message says where.
    """
    if not isinstance(values, Mapping):
        raise DuologueError(f"{where} holds {values!r:.40}, not keys and values. Write lines like 'key: value'.")
    hints = get_type_hints(make)
    for name in values:
        if name not in hints:
            raise DuologueError(f"{where} has no key {name!r}. {did_you_mean(str(name), hints)}")
    made = {name: typed(hints[name], value, f"{where}, {name}") for name, value in values.items()}
    missing = [f.name for f in fields(make) if f.default is f.default_factory is MISSING and f.name not in made]  # type: ignore[arg-type]
    if missing:
        raise DuologueError(f"{where} lacks {', '.join(missing)}. Add what is missing.")
    return make(**made)


def typed(hint: Any, value: object, where: str) -> Any:
    """Return a YAML value in its field's type; ``1e-5``, which YAML 1.1 reads as text, is a number here.

    Raises:
        DuologueError: for a value of a wrong type.
    """
    kind = plain_type(hint)
    if value is not None and is_dataclass(kind) and isinstance(kind, type):
        return from_mapping(kind, value, where)
    return tuple(value) if kind is tuple and isinstance(value, list) else checked_value(hint, value, where)


def _path(config: CompareConfig) -> Path:
    if config.preset.endswith((".yaml", ".yml")):
        path = Path(config.preset)
        if not path.is_file():
            raise DuologueError(f"There is no preset file {config.preset!r}. Check the path.")
        return path
    if config.preset not in SIZES:
        raise DuologueError(f"There is no preset {config.preset!r}. {did_you_mean(config.preset, SIZES)}")
    path = _FOLDER / f"{config.env_name}-{config.preset}.yaml"
    if not path.is_file():
        known = sorted({found.name.rpartition("-")[0] for found in _FOLDER.glob("*.yaml")})
        raise DuologueError(f"There are no presets for {config.env_name!r}. {did_you_mean(config.env_name, known)}")
    return path


def _changed(preset: Preset, config: CompareConfig) -> Preset:
    names = config.arms.split(",") if config.arms is not None else list(preset.arms)
    changed = replace(preset, arms=checked_arms(names))
    if config.steps is not None:
        changed = replace(changed, rl={**changed.rl, "steps": config.steps})
    if config.dialogues is not None:
        others = min(config.dialogues, changed.evaluate.other_dialogues)
        changed = replace(
            changed, evaluate=replace(changed.evaluate, dialogues=config.dialogues, other_dialogues=others)
        )
    return changed
