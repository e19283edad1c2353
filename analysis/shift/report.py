"""What a measurement of shift found, as JSON, Markdown and a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duologue.analysis.shift.returns import Bounds
from duologue.analysis.shift.variation import VariationCurve
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from rich.table import Table

MEANING = {
    "policy": "logs against the policy's own dialogues with the human",
    "simulator": "the policy's dialogues with the simulator against those with the human",
    "both": "logs against the policy's dialogues with the simulator",
}
"""The three shifts, and which dialogues each compares."""


@dataclass(frozen=True, slots=True)
class PairShift:
    """How far two sets of contexts are apart, turn by turn. Lists have one number a turn, from turn 0 on."""

    n: tuple[int, int]
    """Dialogues of each side."""
    paired: bool
    """Row i of both sides had the same task and user seed."""
    reached: tuple[tuple[float, float], ...]
    """Share of each side's dialogues that reached the turn."""
    states: VariationCurve
    """Total variation of the contexts' labels (``states.context_state``): a lower bound of that of the contexts."""
    classifier: tuple[Estimate, ...]
    """Lower bounds by a classifier of words and labels (``classifier_bound``)."""
    likelihood: tuple[Estimate, ...] | None
    """Difference of the mean log-likelihood of a token under the reference model; None without one."""
    gap: Estimate
    """Mean score of the first side less that of the second."""
    bounds: Bounds | None
    """What the deviations bound the gap by; None where they were not measured."""
    signature: str
    """How both sides were made."""

    def estimates(self, estimator: str) -> list[Estimate]:
        """Return one estimator's values by turn: ``states``, ``classifier`` or ``likelihood``."""
        if estimator == "states":
            return [turn.estimate for turn in self.states.turns]
        return list(self.classifier if estimator == "classifier" else self.likelihood or ())

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "n": list(self.n),
            "paired": self.paired,
            "signature": self.signature,
            "reached": [list(shares) for shares in self.reached],
            "states": _curve(self.states),
            "classifier": [e.to_json() for e in self.classifier],
            "likelihood": None if self.likelihood is None else [e.to_json() for e in self.likelihood],
            "gap": self.gap.to_json(),
            "bounds": self.bounds.to_json() if self.bounds else None,
        }


@dataclass(frozen=True, slots=True)
class ShiftReport:
    """Shifts of one policy. Turns are the assistant's, i = 0..H-1."""

    env: str
    turns: int
    """H."""
    pairs: Mapping[str, PairShift]
    """``policy``, ``simulator`` and ``both``, as far as there were dialogues."""
    policy_deviation: VariationCurve | None
    """Lower bounds of epsilon_i, on logged contexts; None if not measured."""
    user_deviation: VariationCurve | None
    """Lower bounds of delta_i, on the policy's histories with the human; None if not measured."""
    left_out: Mapping[str, int]
    """Dialogues that ended with an error, by set; replies and answers that did not come."""
    notes: tuple[str, ...]
    """What a reader must know."""
    signature: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "env": self.env,
            "turns": self.turns,
            "signature": self.signature,
            "pairs": {name: {"compares": MEANING[name], **pair.to_json()} for name, pair in self.pairs.items()},
            "policy_deviation": _curve(self.policy_deviation) if self.policy_deviation else None,
            "user_deviation": _curve(self.user_deviation) if self.user_deviation else None,
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }


def table(report: ShiftReport) -> Table:
    """Return a report as a table for ``rich.print``: a row per shift and turn."""
    from rich.markup import escape
    from rich.table import Table

    head, *rest = rows(report)
    made = Table(*map(escape, head), caption=escape(_caption(report)), caption_justify="left")
    for row in rest:
        made.add_row(*map(escape, row), end_section=row[1] == str(report.turns - 1))
    return made


def markdown(report: ShiftReport) -> str:
    """Return a report as Markdown."""
    head, *rest = rows(report)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rest)]
    return "\n".join([*lines, "", *(f"- {line}" for line in _caption(report).split("\n"))])


def rows(report: ShiftReport) -> list[list[str]]:
    """Return a head, and a row per shift and turn."""
    known = [name for name, pair in report.pairs.items() if pair.likelihood]
    head = ["shift", "turn", "reached", "TV of states", "p", "TV at least", "deviation"] + ["nats a token"] * bool(
        known
    )
    return [head, *(row for name in report.pairs for row in _rows(report, name))]


def _rows(report: ShiftReport, name: str) -> Iterator[list[str]]:
    pair = report.pairs[name]
    deviation = {"policy": report.policy_deviation, "simulator": report.user_deviation}.get(name)
    for turn, found in enumerate(pair.states.turns):
        yield [
            name,
            str(turn),
            " / ".join(f"{share:.0%}" for share in pair.reached[turn]),
            _short(found.estimate),
            f"{found.p:.3f}",
            _short(pair.classifier[turn]),
            _short(deviation.turns[turn].estimate) if deviation else "",
            *([_short(pair.likelihood[turn])] if pair.likelihood else []),
        ]


def _caption(report: ShiftReport) -> str:
    return "\n".join([*_pair_lines(report), *report.notes, *_left_out(report), f"Signature: {report.signature}"])


def _pair_lines(report: ShiftReport) -> Iterator[str]:
    for name, pair in report.pairs.items():
        made = pair.bounds
        bound = f", bound {_short(made.linear)}, {'held' if made.held else 'not held'}" if made else ""
        n = f"n={pair.n[0]} and {pair.n[1]}{', paired' if pair.paired else ''}"
        yield f"{name}: {MEANING[name]} ({n}); any turn p={pair.states.p:.3f}; gap of scores {_short(pair.gap)}{bound}"


def _left_out(report: ShiftReport) -> list[str]:
    found = ", ".join(f"{name} {n}" for name, n in report.left_out.items() if n)
    return [f"Left out: {found}"] if found else []


def _short(estimate: Estimate) -> str:
    if estimate.value != estimate.value:
        return "n/a"
    interval = "" if estimate.low != estimate.low else f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{interval}"


def _curve(curve: VariationCurve) -> dict[str, Any]:
    return {"by_turn": [turn.to_json() for turn in curve.turns], "p": curve.p}
