"""The theory's numbers: rates, random dialogues, learning. One dictionary, which tables and the figure read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from duologue import __version__
from duologue.analysis.theory.bounds import gap, linear_bound, quadratic_bound
from duologue.analysis.theory.config import TheoryConfig
from duologue.analysis.theory.exact import shift
from duologue.analysis.theory.families import SHIFTS, family, worst_ratios
from duologue.analysis.theory.learning import ARMS, CONTEXTS, OWN, Learned, learned
from duologue.trainers.stats import RESAMPLES, Estimate, mean

OnProgress = Callable[[int, int, float | None], None]
"""Told: learners trained, learners in all, the last one's gap."""
RATE = 1e-5
"""ε and δ of the family: so small that ``RATE * H`` stays far below 1."""
RATE_HORIZONS = (32, 64, 128, 256, 512)
"""Where the slopes of the family are fitted: H (H + 1) / 2 is no power of H before H is large."""
RANDOM_CASES = 2_000
"""Random dialogues of each size."""
_MEASURES = ("gap", "final_gap", "error", "bound")


def theory(config: TheoryConfig, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """Work out everything, and write ``theory.json`` and ``table.md`` into ``config.output``.

    Args:
        config: horizons, seeds and the folder.
        on_progress: told of each learner.

    Returns:
        What ``theory.json`` holds.
    """
    from duologue.analysis.theory.table import markdown

    found = {
        "signature": f"theory|horizons:{config.horizons}|seeds:{config.seeds}|duologue:{__version__}",
        "rates": rates(config.turns),
        "random": random_check(),
        "learning": learning(config.turns, config.seeds, on_progress),
    }
    folder = Path(config.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theory.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(markdown(found) + "\n", encoding="utf-8")
    return found


def rates(horizons: Sequence[int]) -> dict[str, Any]:
    """Return gap, bound and their ratio in the family that attains them, by horizon, with slopes."""
    families = [_family_rates(shifted, final_only, horizons) for shifted in SHIFTS for final_only in (False, True)]
    return {"rate": RATE, "slope_horizons": list(RATE_HORIZONS), "families": families}


def _family_rates(shifted: str, final_only: bool, horizons: Sequence[int]) -> dict[str, Any]:
    rows = [_family_row(shifted, final_only, h) for h in horizons]
    long = [_family_row(shifted, final_only, h) for h in RATE_HORIZONS]
    return {
        "shifted": shifted,
        "paid": "final turn" if final_only else "every turn",
        "rows": rows,
        "slope": slope(RATE_HORIZONS, [row["gap"] for row in long]),
        "slope_of_rows": _known(slope(horizons, [row["gap"] for row in rows])),
    }


def _family_row(shifted: str, final_only: bool, horizon: int) -> dict[str, float]:
    first, second = family(horizon, RATE, shifted, final_only=final_only)
    limit = (linear_bound if final_only else quadratic_bound)(shift(first, second))
    apart = float(gap(first, second))
    return {"horizon": horizon, "gap": apart, "bound": float(limit), "ratio": apart / float(limit)}


def random_check() -> list[dict[str, Any]]:
    """Return, for each way to pay, how near random dialogues come to the bound: none may pass it."""
    return [
        {
            "paid": paid,
            "dialogues": len(ratios),
            "above": int((ratios > 1.0 + 1e-12).sum()),
            "largest": float(ratios.max()),
            "median": float(np.median(ratios)),
        }
        for paid, ratios in worst_ratios(RANDOM_CASES).items()
    ]


def learning(horizons: Sequence[int], seeds: int, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """Return what learners on logged and on their own contexts lose, with intervals over seeds.

    Args:
        horizons: numbers of turns.
        seeds: learners of each kind at each horizon.
        on_progress: told of each learner.
    """
    runs: dict[str, list[list[Learned]]] = {arm: [] for arm in ARMS}
    total = len(ARMS) * len(horizons) * seeds
    for horizon in horizons:
        for arm in ARMS:
            runs[arm].append([])
            for seed in range(seeds):
                runs[arm][-1].append(learned(horizon, arm, seed))
                if on_progress:
                    done = sum(len(row) for rows in runs.values() for row in rows)
                    on_progress(done, total, runs[arm][-1][-1].gap)
    return {"contexts": CONTEXTS, "seeds": seeds, "arms": [_arm(arm, horizons, runs) for arm in ARMS]}


def _arm(arm: str, horizons: Sequence[int], runs: Mapping[str, Sequence[Sequence[Learned]]]) -> dict[str, Any]:
    rows = []
    for horizon, own, others in zip(horizons, runs[OWN], runs[arm], strict=True):
        measured = {name: mean([getattr(one, name) for one in others]).to_json() for name in _MEASURES}
        more = mean([a.gap - b.gap for a, b in zip(others, own, strict=True)]).to_json()
        rows.append({"horizon": horizon, **measured, "more_than_on_policy": more})
    gaps = [[one.gap for one in row] for row in runs[arm]]
    return {"arm": arm, "rows": rows, "slope": slope_of_means(horizons, gaps).to_json()}


def slope(horizons: Sequence[int], values: Sequence[float]) -> float:
    """Return the least-squares slope of log value over log horizon, the power of H. NaN for one horizon or a 0.

    Args:
        horizons: at least 1 each.
        values: not negative, one per horizon.
    """
    if len(horizons) < 2 or min(values) <= 0:
        return math.nan
    x, y = np.log(horizons), np.log(values)
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def slope_of_means(horizons: Sequence[int], values: Sequence[Sequence[float]], seed: int = 0) -> Estimate:
    """Return the slope of mean values with the percentile bootstrap's 95 % interval over training seeds.

    Args:
        horizons: one per row.
        values: a row per horizon, in it a value per training seed.
        seed: of the resamples, which draw training seeds for every horizon at once.
    """
    table = np.asarray(values, dtype=np.float64)
    n = table.shape[1]
    value = slope(horizons, table.mean(axis=1).tolist())
    if n < 2 or math.isnan(value):
        return Estimate(value, math.nan, math.nan, n)
    rows = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    slopes = np.array([slope(horizons, means) for means in table[:, rows].mean(axis=-1).T.tolist()])
    low, high = np.nanquantile(slopes, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
