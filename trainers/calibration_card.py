"""The model card of a calibrated user, in the Hugging Face form, and its table of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from duologue.engines.models import DEFAULT_MODEL
from duologue.simulators.calibrated_folder import CalibrationNote

_ROWS = (
    ("NLL per token", "all"),
    ("of the words", "text"),
    ("of decisions", "decision"),
    ("NLL per decision", "per_decision"),
    ("bits per byte", "bits_per_byte"),
)


def write_card(folder: Path, note: CalibrationNote, metrics: Mapping[str, Any]) -> None:
    """Write ``README.md`` into a calibrated user's folder."""
    from jinja2 import Environment, StrictUndefined

    text = files("duologue.trainers").joinpath("calibration_card.jinja").read_text(encoding="utf-8")
    env = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    source = str(note.settings["model"])
    hub = "HuggingFaceTB/SmolLM2-135M-Instruct" if source == DEFAULT_MODEL else source
    card = env.from_string(text).render(
        note=note,
        metrics=metrics,
        library="peft" if (folder / "adapter_config.json").is_file() else "transformers",
        hub=None if Path(hub).is_dir() else hub,
        table=nll_table(metrics),
        turns=[[i, shown(b), shown(a)] for i, (b, a) in enumerate(_by_turn(metrics))],
        change=shown(metrics["change"]),
    )
    (folder / "README.md").write_text(card + "\n", encoding="utf-8")


def nll_table(metrics: Mapping[str, Any], digits: int = 3) -> list[list[str]]:
    """Return the numbers of ``metrics.json`` as rows of text: what, before, after, reference.

    The reference is the constant rate for decisions as a whole, the unigram for everything else.
    """
    return [[label, *(shown(found, digits) for found in _numbers(metrics, name))] for label, name in _ROWS]


def _numbers(metrics: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    reference = "constant_rate" if name == "per_decision" else "unigram"
    return [metrics[model][name] for model in ("before", "after", reference)]


def shown(estimate: Mapping[str, Any], digits: int = 3) -> str:
    """Return an estimate as text, with its interval if it has one."""
    if estimate["value"] is None:
        return "-"
    interval = "" if estimate["low"] is None else f" [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"
    return f"{estimate['value']:.{digits}f}{interval}"


def _by_turn(metrics: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return list(zip(metrics["before"]["by_turn"], metrics["after"]["by_turn"], strict=True))
