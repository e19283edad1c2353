"""Rewards made of rewards."""

import math
from collections.abc import Mapping, Sequence

from duologue.errors import DuologueError, did_you_mean
from duologue.rewards.base import Reward, Score, score, signature_of
from duologue.types import Dialogue


class WeightedSum:
    """The weighted sum of named rewards, with every part logged.

    A part that is not scored (None) leaves the total unscored, unless its weight is 0: such a part is only logged.

    With a ``gate``, the other parts count only where the gate's own value is above 0. Without one, shaping terms such
    as length tell apart dialogues that all failed, and a group-relative trainer learns from that difference alone.

    Args:
        parts: name to (reward, weight).
        gate: the name of the part that opens the others, usually the outcome.

    Raises:
        DuologueError: if there are no parts, a weight is not finite, or the gate is not one of the names.
    """

    def __init__(self, parts: Mapping[str, tuple[Reward, float]], gate: str | None = None) -> None:
        if not parts:
            raise DuologueError("WeightedSum needs parts. Give e.g. {'outcome': (ExactMatch(), 1.0)}.")
        for name, (_, weight) in parts.items():
            if not math.isfinite(weight):
                raise DuologueError(f"The weight of {name!r} is {weight}. Give a finite number.")
        if gate is not None and gate not in parts:
            raise DuologueError(f"The gate {gate!r} is not a part. {did_you_mean(gate, parts)}")
        self._parts = dict(parts)
        self._gate = gate

    def __call__(self, dialogues: Sequence[Dialogue], /) -> list[float | None]:
        """Return one total per dialogue, in order."""
        return [result.value for result in self.score(dialogues)]

    def score(self, dialogues: Sequence[Dialogue], /) -> list[Score]:
        """Return one total per dialogue with its parts; the parts of a part are named ``part/inner``.

        Raises:
            DuologueError: if a part returns another number of scores than it was given dialogues.
        """
        columns = {name: self._column(name, dialogues) for name in self._parts}
        return [self._total({name: column[i] for name, column in columns.items()}) for i in range(len(dialogues))]

    @property
    def signature(self) -> str:
        """Return the formula, with each part's own signature."""
        terms = "+".join(f"{weight:g}*{name}({signature_of(part)})" for name, (part, weight) in self._parts.items())
        return f"sum[{terms}]" + (f"|gate:{self._gate}" if self._gate else "")

    def _column(self, name: str, dialogues: Sequence[Dialogue]) -> list[Score]:
        """Score all dialogues with one part."""
        column = score(self._parts[name][0], dialogues)
        if len(column) != len(dialogues):
            raise DuologueError(
                f"The reward {name!r} returned {len(column)} scores for {len(dialogues)} dialogues. "
                "Return exactly one score (or None) per dialogue, in order."
            )
        return column

    def _total(self, results: Mapping[str, Score]) -> Score:
        """Combine one dialogue's parts."""
        log: dict[str, float | None] = {}
        for name, result in results.items():
            log[name] = result.value
            log.update({f"{name}/{inner}": value for inner, value in result.parts.items()})
        terms = [self._term(name, results) for name in results]
        known = [term for term in terms if term is not None]
        return Score(math.fsum(known) if len(known) == len(terms) else None, log)

    def _term(self, name: str, results: Mapping[str, Score]) -> float | None:
        """Return what one part adds to the total, None if that is not known."""
        weight = self._parts[name][1]
        gate = results[self._gate].value if self._gate else 1.0
        shut = name != self._gate and (gate is None or gate <= 0)
        if weight == 0 or shut:
            return 0.0 if gate is not None else None
        value = results[name].value
        return None if value is None else weight * value
