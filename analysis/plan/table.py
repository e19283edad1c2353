"""A plan's numbers for people and programs: tables for the terminal, and JSON. Each number stands by its formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity, in every way that a section compares."""

    name: str
    values: tuple[float, ...]
    unit: str
    formula: str


@dataclass(frozen=True, slots=True)
class Section:
    """Quantities that belong together."""

    title: str
    columns: tuple[str, ...]
    """What is compared: the name of each value of a line."""
    lines: Sequence[Line]

    def value(self, name: str, column: str) -> float:
        """Return one number.

        Raises:
            KeyError: if there is no such line or column.
        """
        values = {line.name: dict(zip(self.columns, line.values, strict=True)) for line in self.lines}
        return values[name][column]


def to_json(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Return sections as JSON values, numbers unrounded."""
    return [
        {
            "title": section.title,
            "lines": [
                {
                    "name": line.name,
                    "values": dict(zip(section.columns, line.values, strict=True)),
                    "unit": line.unit,
                    "formula": line.formula,
                }
                for line in section.lines
            ],
        }
        for section in sections
    ]


def table(section: Section) -> Table:
    """Return a section for ``rich.print``."""
    from rich.markup import escape
    from rich.table import Table

    made = Table(title=escape(section.title), title_justify="left")
    made.add_column("")
    for column in section.columns:
        made.add_column(escape(column), justify="right")
    made.add_column("unit")
    made.add_column("formula")
    for line in section.lines:
        made.add_row(*map(escape, (line.name, *map(number, line.values), line.unit, line.formula)))
    return made


def number(value: float) -> str:
    """Return a number with three digits that count, and all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
