"""What explains the scores: how far an arm's contexts of training are from those that its policy meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from duologue.trainers.stats import RESAMPLES, Estimate

Number = Mapping[str, Any]
FEWEST = 4
"""Points below which a rank correlation says nothing."""


@dataclass(frozen=True, slots=True)
class ContextShift:
    """Which dialogues of a comparison are set against each other for one arm and seed."""

    env: str
    tasks: str
    """Of the evaluation."""
    met: str
    """Folder of the policy's dialogues with the held-out user."""
    own: str | None
    """Folder of its dialogues with its training user; None = it was trained on the logs."""
    logs: str | None
    """File of the logs, for an arm that was trained on them."""
    dialogues: int
    """Most logged dialogues."""
    turns: int


def measure_contexts(config: ContextShift) -> dict[str, Any]:
    """Return the shift between an arm's contexts of training and those that it meets, by turn, and the gap of scores.

    See ``analysis.shift.measure_shift``: total variation of states, a lower bound of that of contexts.
    """
    from duologue.analysis.shift import measure_shift
    from duologue.analysis.store import EpisodeFile
    from duologue.envs.tasks.spec import make_tasks
    from duologue.simulators.logs import read_logs
    from duologue.simulators.spec import env_name

    def played(folder: str | None) -> list[Any]:
        episodes = list(EpisodeFile(Path(folder) / "episodes.jsonl").read()) if folder else []
        return sorted(episodes, key=lambda e: e.seed)  # in the same order however often the work was interrupted

    find = make_tasks(config.tasks, env_name(config.env)).find
    logs = read_logs(config.logs)[: config.dialogues] if config.logs else []
    report = measure_shift(logs, played(config.met), played(config.own), find, turns=config.turns)
    (name, pair), *_ = report.pairs.items()
    turns = [turn.to_json() for turn in pair.states.turns]
    return {
        "pair": name,
        "n": list(pair.n),
        "states": turns,
        "p": pair.states.p,
        "shift": sum(turn["value"] for turn in turns) / len(turns),
        "gap": pair.gap.to_json(),
    }


def explained(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what shift foretells, over arms and seeds.

    Args:
        points: each with ``shift`` (mean over turns), ``gap`` (an estimate: score on the training side less the score
            with held-out users) and ``regret`` (score of the oracle of the same seed less the arm's; None without one).

    Returns:
        The points, and Spearman's rank correlation of shift with the size of the gap, and with regret.
    """
    gaps = [(point["shift"], abs(point["gap"]["value"])) for point in points if point["gap"]["value"] is not None]
    regrets = [(point["shift"], point["regret"]) for point in points if point["regret"] is not None]
    found = {"gap": rank_correlation(gaps).to_json(), "regret": rank_correlation(regrets).to_json()}
    return {"points": list(points), "rank_correlation": found}


def rank_correlation(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Estimate:
    """Return Spearman's rank correlation with a percentile bootstrap over the pairs (10,000 resamples, seeded).

    NaN with fewer than four pairs, or if one side never varies; resamples in which it does not vary do not count.
    """
    found = np.asarray(pairs, dtype=float).reshape(-1, 2)
    n = len(found)
    if n < FEWEST or len(set(found[:, 0])) == 1 or len(set(found[:, 1])) == 1:
        return Estimate(float("nan"), float("nan"), float("nan"), n)
    rows = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = _spearman(found[rows])
    low, high = np.quantile(draws[np.isfinite(draws)], [0.025, 0.975])
    return Estimate(float(_spearman(found[None])[0]), float(low), float(high), n)


def _spearman(pairs: Any) -> Any:
    """Return the correlations of ranks of (draws, pairs, 2); equal values share their mean rank."""
    from scipy.stats import rankdata

    ranks = rankdata(pairs, axis=1)
    off = ranks - ranks.mean(axis=1, keepdims=True)
    return (off[..., 0] * off[..., 1]).sum(axis=1) / np.sqrt((off**2).sum(axis=1).prod(axis=1))
