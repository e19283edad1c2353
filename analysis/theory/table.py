"""The theory's numbers for people: tables for the terminal and as Markdown. Pure functions of ``theory.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duologue.analysis.theory.learning import OWN
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from rich.table import Table

Results = Mapping[str, Any]
_SHIFTED = {"policy": "policy (3.1)", "user": "user (3.2)", "both": "both"}


@dataclass(frozen=True, slots=True)
class Part:
    """One table: its title, names of columns, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def parts(results: Results) -> list[Part]:
    """Return the tables of ``theory.json``."""
    return [_rates(results["rates"]), _slopes(results["rates"]), _random(results["random"]), _learning(results)]


def markdown(results: Results) -> str:
    """Return the tables as Markdown."""
    blocks = ["# The theory of distribution shift, worked out on finite dialogues"]
    for part in parts(results):
        lines = [part.columns, ("---",) * len(part.columns), *part.rows]
        blocks += [f"## {part.title}", "\n".join(f"| {' | '.join(cells)} |" for cells in lines)]
    return "\n\n".join([*blocks, f"Signature: `{results['signature']}`"])


def tables(results: Results) -> list[Table]:
    """Return the tables for ``rich.print``."""
    from rich.markup import escape
    from rich.table import Table

    made = []
    for part in parts(results):
        table = Table(*map(escape, part.columns), title=escape(part.title), title_justify="left")
        for cells in part.rows:
            table.add_row(*map(escape, cells))
        made.append(table)
    return made


def _rates(rates: Results) -> Part:
    rows = [
        (_SHIFTED[one["shifted"]], one["paid"], str(row["horizon"]), *_gap_and_bound(row))
        for one in rates["families"]
        for row in one["rows"]
    ]
    title = f"The family that attains the bounds, ε = δ = {rates['rate']:g}"
    return Part(title, ("shifted", "paid", "H", "gap", "bound", "gap / bound"), rows)


def _gap_and_bound(row: Results) -> tuple[str, str, str]:
    return f"{row['gap']:.4g}", f"{row['bound']:.4g}", f"{row['ratio']:.4f}"


def _slopes(rates: Results) -> Part:
    fitted = rates["slope_horizons"]
    rows = [
        (_SHIFTED[one["shifted"]], one["paid"], f"{one['slope']:.3f}", _number(one["slope_of_rows"]))
        for one in rates["families"]
    ]
    columns = ("shifted", "paid", f"slope, H = {fitted[0]} … {fitted[-1]}", "slope over the rows above")
    return Part("The power of H at which its gap grows", columns, rows)


def _random(random: Sequence[Results]) -> Part:
    rows = [
        (r["paid"], f"{r['dialogues']:,}", str(r["above"]), f"{r['largest']:.4f}", f"{r['median']:.4f}") for r in random
    ]
    columns = ("paid", "dialogues", "above the bound", "largest gap / bound", "median")
    return Part("Random dialogues", columns, rows)


def _learning(results: Results) -> Part:
    found = results["learning"]
    rows = [_learning_row(arm["arm"], row) for arm in found["arms"] for row in arm["rows"]]
    rows += [(arm["arm"], "slope", shown(arm["slope"]), *[""] * 4) for arm in found["arms"]]
    title = (
        f"Learning from {found['contexts']:,} contexts, logged or its own; mean [95 % interval] over "
        f"{found['seeds']} seed{'s' if found['seeds'] > 1 else ''}"
    )
    columns = ("learner", "H", "gap", "more than on-policy", "ε", "bound", "final gap")
    return Part(title, columns, rows)


def _learning_row(arm: str, row: Results) -> tuple[str, ...]:
    more = "" if arm == OWN else shown(row["more_than_on_policy"])
    means = (f"{row[name]['value']:.3g}" for name in ("error", "bound", "final_gap"))
    return (arm, str(row["horizon"]), shown(row["gap"]), more, *means)


def estimate(row: Results) -> Estimate:
    """Return an estimate of ``theory.json``."""
    value, low, high = (math.nan if row[name] is None else row[name] for name in ("value", "low", "high"))
    return Estimate(value, low, high, row["n"])


def shown(row: Results) -> str:
    """Return an estimate of ``theory.json`` without its n, which the title has."""
    return str(estimate(row)).rpartition(" (n=")[0]


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
