"""From finished cells to results.json: every number with its interval, n, seeds and signature."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from os import cpu_count
from typing import Any

import duologue
from duologue.analysis.compare.cells import FITTED, TRAINED_WITH, Cell, Plan, axis_arm, shift_stage
from duologue.analysis.compare.config import TRAINED
from duologue.analysis.compare.explain import explained
from duologue.analysis.compare.intervals import RESAMPLES, Unit, nested
from duologue.analysis.compare.stages import Done
from duologue.analysis.compare.verdict import COMPARED, verdicts
from duologue.analysis.figures import read_metrics
from duologue.analysis.play import starts_of
from duologue.analysis.store import EpisodeFile
from duologue.analysis.summary import METRICS, leak_count
from duologue.envs.tasks.spec import make_tasks
from duologue.json_files import read_object
from duologue.simulators.spec import env_name
from duologue.trainers.stats import Estimate
from duologue.types import Episode, Task

Cells = Mapping[tuple[str, str], Sequence[Sequence[Episode]]]
"""Episodes by policy and user: of each seed, in the order of their starts."""
Measure = Callable[[Episode], float]


def results(plan: Plan, done: Mapping[str, Done]) -> dict[str, Any]:
    """Return what a finished comparison says, as JSON.

    All but ``timing`` and ``machine`` is the same however often the work was interrupted.
    """
    cells = read_cells(plan)
    preset = plan.preset
    find = make_tasks(preset.tasks.test, env_name(preset.env)).find
    found: dict[str, Any] = {
        "env": preset.env,
        "metric": METRICS.get(preset.env, "reward"),
        "about": preset.about,
        "package": duologue.__version__,
        "seeds": plan.seeds,
        "dialogues": {"held_out": preset.evaluate.dialogues, "others": preset.evaluate.other_dialogues},
        "interval": f"95 %, hierarchical bootstrap (seeds, then dialogues), {RESAMPLES} resamples, percentile",
        "policies": list(plan.policies),
        "users": {"held_out": preset.users.held_out, "human": preset.users.human, "naive": preset.users.naive},
        "skipped": dict(plan.skipped),
        "arms": {policy: _arm(policy, cells, plan, done, find) for policy in plan.policies},
        "unscored": _unscored(plan, done),
        "matrix": _matrix(plan.policies, cells),
        "differences": _differences(plan.policies, cells),
        "curves": {p: curve for p in plan.policies if (curve := _curve(plan, p))},
        "held_out_curves": _held_out_curves(plan, cells),
        "score_by_turn": {p: _by_turn(cells[p, "held_out"], preset.limits.max_turns) for p in plan.policies},
        "calibration": _calibration(plan),
        "facts": {name: work.facts for name, work in sorted(done.items())},
    }
    found["shift"] = explained(_points(plan, done, found["arms"], cells))
    found["fidelity"] = {
        f"seed-{k}": {user: d.facts for user in FITTED if (d := done.get(f"seed-{k}/fidelity/{user}"))}
        for k in range(plan.seeds)
    }
    if axis := axis_rows(plan):
        found["axis"] = axis
    found["verdict"] = verdicts(found)
    found["timing"] = _timing(done)
    found["machine"] = machine()
    return found


def read_cells(plan: Plan) -> dict[tuple[str, str], list[list[Episode]]]:
    """Return the episodes of all cells, by policy and user."""
    return _read(plan, plan.cells)


def _read(plan: Plan, cells: Sequence[Cell]) -> dict[tuple[str, str], list[list[Episode]]]:
    found: dict[tuple[str, str], list[list[Episode]]] = {}
    for cell in cells:
        found.setdefault((cell.policy, cell.user), []).append(read_cell(plan, cell))
    return found


def read_cell(plan: Plan, cell: Cell) -> list[Episode]:
    """Return a cell's episodes in the order of their starts, whatever order they ended in."""
    config = next(stage.config for stage in plan.stages if stage.name == cell.name)
    episodes = {e.seed: e for e in EpisodeFile(plan.root / cell.name / "episodes.jsonl").read()}
    return [episodes[start.seed] for start in starts_of(config.seed, config.episodes)]


def axis_rows(plan: Plan) -> dict[str, Any] | None:
    """Return true and apparent score of each arm of the axis, and their paired difference; None without an axis."""
    axis = plan.preset.axis
    if axis is None:
        return None
    cells = _read(plan, plan.axis)
    arms = [(value, cells[axis_arm(value), "held_out"], cells[axis_arm(value), "own"]) for value in axis.values]
    rows = [
        {
            "value": value,
            "user": axis.user_at(value),
            "score": _mean(judged, _reward, is_share=True).to_json(),
            "apparent": _mean(apparent, _reward, is_share=True).to_json(),
            "gap": _paired(apparent, judged, _reward).to_json(),
        }
        for value, judged, apparent in arms
    ]
    return {"label": axis.label, "rows": rows}


def _arm(
    policy: str, cells: Cells, plan: Plan, done: Mapping[str, Done], find: Callable[[str], Task]
) -> dict[str, Any]:
    judged, own = cells[policy, "held_out"], TRAINED_WITH.get(policy)
    apparent = cells.get((policy, own)) if own else None
    return {
        "trained_with": own,
        "score": _mean(judged, _reward, is_share=True).to_json(),
        "apparent": _mean(apparent, _reward, is_share=True).to_json() if apparent else None,
        "gap": _paired(apparent, judged, _reward).to_json() if apparent else None,
        "turns": _mean(judged, lambda e: e.n_turns).to_json(),
        "tokens": _tokens(judged),
        "leaks": _leaks(judged, find).to_json(),
        "unscored": sum(e.reward is None for episodes in judged for e in episodes),
        "cost": _cost(policy, plan, done),
    }


def _reward(episode: Episode) -> float:
    return episode.reward or 0.0


def _scored(episodes: Sequence[Episode]) -> list[Episode]:
    return [e for e in episodes if e.reward is not None]


def _mean(seeds: Sequence[Sequence[Episode]], measure: Measure, *, is_share: bool = False) -> Estimate:
    units = [[Unit(e.task_id, measure(e)) for e in _scored(episodes)] for episodes in seeds]
    return nested(units, is_share=is_share)


def _paired(a: Sequence[Sequence[Episode]], b: Sequence[Sequence[Episode]], measure: Measure) -> Estimate:
    """Return the mean of a - b over dialogues with the same start that both sides scored."""
    return nested([_differing(x, y, measure) for x, y in zip(a, b, strict=True)])


def _differing(a: Sequence[Episode], b: Sequence[Episode], measure: Measure) -> list[Unit]:
    others = {e.seed: e for e in _scored(b)}
    return [Unit(e.task_id, measure(e) - measure(others[e.seed])) for e in _scored(a) if e.seed in others]


def _tokens(seeds: Sequence[Sequence[Episode]]) -> dict[str, Any] | None:
    """Return sampled tokens per dialogue; None where they are unknown."""
    if not any(e.completion_mask for episodes in seeds for e in episodes):
        return None
    return _mean(seeds, lambda e: sum(e.completion_mask)).to_json()


def _leaks(seeds: Sequence[Sequence[Episode]], find: Callable[[str], Task]) -> Estimate:
    units = [[Unit(e.task_id, leak_count(e, find), _user_turns(e)) for e in _scored(episodes)] for episodes in seeds]
    return nested(units, is_share=True)


def _user_turns(episode: Episode) -> int:
    return sum(m["role"] == "user" for m in episode.messages)


def _cost(policy: str, plan: Plan, done: Mapping[str, Done]) -> dict[str, Any] | None:
    """Return steps and tokens of an arm's training, means over seeds; None for what is not trained here."""
    facts = [d.facts for k in range(plan.seeds) if (d := done.get(f"seed-{k}/{policy}"))]
    if not facts:
        return None
    return {key: sum(f[key] for f in facts) / len(facts) for key in ("steps", "sampled_tokens")}


def _matrix(policies: Sequence[str], cells: Cells) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {policy: {} for policy in policies}
    for (policy, user), seeds in cells.items():
        rows[policy][user] = _mean(seeds, _reward, is_share=True).to_json()
    return rows


def _unscored(plan: Plan, done: Mapping[str, Done]) -> dict[str, int]:
    """Return how many dialogues of a cell could not be scored, for cells with any."""
    return {
        cell.name: n
        for cell in (*plan.cells, *plan.axis, *plan.checkpoints)
        if (n := done[cell.name].facts["unscored"])
    }


def _differences(policies: Sequence[str], cells: Cells) -> dict[str, dict[str, Any]]:
    """Return paired differences with held-out users, for the pairs that the verdict speaks of."""
    found: dict[str, dict[str, Any]] = {}
    for a, b in COMPARED:
        if a in policies and b in policies:
            left, right = cells[a, "held_out"], cells[b, "held_out"]
            found[f"{a} - {b}"] = {
                "score": _paired(left, right, _reward).to_json(),
                "turns": _paired(left, right, lambda e: e.n_turns).to_json(),
            }
    return found


def _points(plan: Plan, done: Mapping[str, Done], arms: Mapping[str, Any], cells: Cells) -> list[dict[str, Any]]:
    """Return shift, gap and regret of every trained arm and seed."""
    made = []
    for seed, arm in product(range(plan.seeds), (arm for arm in TRAINED if arm in arms)):
        facts = done[shift_stage(seed, arm)].facts
        regret = _regret(cells, arm, seed) if "oracle" in arms and arm != "oracle" else None
        made.append({"arm": arm, "seed": seed, **facts, "regret": regret})
    return made


def _regret(cells: Cells, arm: str, seed: int) -> float:
    """Return how far an arm stays below the oracle of its seed, on the same dialogues."""
    return _paired([cells["oracle", "held_out"][seed]], [cells[arm, "held_out"][seed]], _reward).value


def _curve(plan: Plan, policy: str) -> list[dict[str, float]]:
    """Return the mean reward of each training step, over seeds."""
    rewards: dict[int, list[float]] = {}
    for seed in range(plan.seeds):
        path = plan.root / f"seed-{seed}" / policy / "metrics.jsonl"
        for row in read_metrics(path) if path.is_file() else ():
            if row.get("reward") is not None:
                rewards.setdefault(row["step"], []).append(row["reward"])
    return [{"step": step, "reward": sum(r) / len(r), "seeds": len(r)} for step, r in sorted(rewards.items())]


def _held_out_curves(plan: Plan, cells: Cells) -> dict[str, list[dict[str, Any]]]:
    """Return the score with held-out users of every checkpoint that was measured, and of the end of training."""
    measured: dict[tuple[str, int], list[Sequence[Episode]]] = {}
    for cell in plan.checkpoints:
        measured.setdefault((cell.policy, cell.step or 0), []).append(read_cell(plan, cell))
    last = int(plan.preset.rl["steps"]) if measured else 0
    for policy in {policy for policy, _ in measured}:
        measured[policy, last] = list(cells[policy, "held_out"])
    curves: dict[str, list[dict[str, Any]]] = {}
    for (policy, step), seeds in sorted(measured.items()):
        curves.setdefault(policy, []).append({"step": step, "score": _mean(seeds, _reward, is_share=True).to_json()})
    return curves


def _by_turn(seeds: Sequence[Sequence[Episode]], turns: int) -> list[float]:
    """Return, for each turn, the score per dialogue of those that had ended by then; the others count 0 so far."""
    episodes = [e for one in seeds for e in _scored(one)]
    ended = [sum(_reward(e) for e in episodes if e.n_turns <= turn) for turn in range(1, turns + 1)]
    return [total / len(episodes) if episodes else 0.0 for total in ended]


def _calibration(plan: Plan) -> dict[str, Any]:
    """Return what each calibrated user's folder tells about its fit."""
    paths = {f"seed-{k}": plan.root / f"seed-{k}" / "user" / "model" / "metrics.json" for k in range(plan.seeds)}
    return {name: read_object(path, "Calibrate that user again.") for name, path in paths.items() if path.is_file()}


def _timing(done: Mapping[str, Done]) -> dict[str, Any]:
    return {
        "hours": sum(work.seconds for work in done.values()) / 3600,
        "seconds": {name: round(work.seconds, 1) for name, work in done.items()},
        "interrupted": sorted(name for name, work in done.items() if work.attempts > 1),
    }


def machine() -> dict[str, Any]:
    """Return what the numbers were computed on."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    libraries = {name: _version(name) for name in ("torch", "transformers", "trl", "peft", "numpy")}
    system = f"{platform.system()} {platform.machine()}"
    return {
        "system": system,
        "cores": cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
        "python": platform.python_version(),
        **libraries,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
