"""What was expected, and whether the numbers say so. A pure function of results.json: nothing is arranged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Number = Mapping[str, Any]
"""An ``Estimate`` as JSON."""
RIVALS = ("base", "clone", "static", "dpo", "naive")
"""What the calibrated arm should be better than; the oracle has what no other arm has."""
COMPARED = (
    ("clone", "base"),
    ("static", "base"),
    ("dpo", "base"),
    ("dpo", "static"),
    ("naive", "base"),
    ("naive", "static"),
    ("naive", "dpo"),
    ("oracle", "calibrated"),
    *(("calibrated", rival) for rival in RIVALS),
)
"""Pairs whose paired differences are computed."""


def verdicts(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each expectation with its outcome: ``holds``, ``reversed`` (both at 95 %) or ``undecided``.

    An expectation about arms that were not run is left out.
    """
    made = [
        _ordered(results, "static < naive", "naive - static"),
        _ordered(results, "naive < calibrated", "calibrated - naive"),
        _best(results),
        _ordered(results, "calibrated < oracle", "oracle - calibrated"),
        _ordered(results, "calibrated needs fewer turns than static", "calibrated - static", "turns", sign=-1),
        _ordered(results, "calibrated needs fewer turns than naive", "calibrated - naive", "turns", sign=-1),
        _gap(results),
        *_axis_gaps(results),
    ]
    return [verdict for verdict in made if verdict]


def outcome(estimates: Sequence[Number], sign: int = 1) -> str:
    """Return whether all numbers have the expected sign.

    Args:
        estimates: differences with their intervals.
        sign: 1 if they should be above 0, -1 if below.

    Returns:
        ``holds`` if all intervals lie on the expected side of 0, ``reversed`` if any lies on the other one, else
        ``undecided``.
    """
    lows, highs = zip(*(_bounds(estimate, sign) for estimate in estimates), strict=True)
    if all(low is not None and low > 0 for low in lows):
        return "holds"
    return "reversed" if any(high is not None and high < 0 for high in highs) else "undecided"


def _bounds(estimate: Number, sign: int) -> tuple[float | None, float | None]:
    low, high = estimate["low"], estimate["high"]
    if low is None or high is None or sign > 0:
        return low, high
    return -high, -low


def _ordered(
    results: Mapping[str, Any], claim: str, pair: str, measure: str = "score", sign: int = 1
) -> dict[str, Any] | None:
    found = results["differences"].get(pair)
    if found is None:
        return None
    evidence = {f"{pair}, {measure}": found[measure]}
    return {"claim": claim, "outcome": outcome([found[measure]], sign), "evidence": evidence}


def _best(results: Mapping[str, Any]) -> dict[str, Any] | None:
    pairs = [f"calibrated - {rival}" for rival in RIVALS]
    found = {
        f"{pair}, score": results["differences"][pair]["score"] for pair in pairs if pair in results["differences"]
    }
    if len(found) < 2:
        return None
    claim = (
        f"calibrated is better than {', '.join(rival for rival in RIVALS if f'calibrated - {rival}, score' in found)}"
    )
    return {"claim": claim, "outcome": outcome(list(found.values())), "evidence": found}


def _gap(results: Mapping[str, Any]) -> dict[str, Any] | None:
    gap = results["arms"].get("naive", {}).get("gap")
    if gap is None:
        return None
    evidence = {"naive, apparent - true": gap}
    return {
        "claim": "naive scores higher with its own user than with held-out users",
        "outcome": outcome([gap]),
        "evidence": evidence,
    }


def _axis_gaps(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    axis = results.get("axis") or {"label": "", "rows": []}
    return [
        {
            "claim": f"trained at {axis['label']} {row['value']:g}, a policy scores higher with its own user",
            "outcome": outcome([row["gap"]]),
            "evidence": {"apparent - true": row["gap"]},
        }
        for row in axis["rows"]
    ]
