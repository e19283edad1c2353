"""table.md: the comparison for people. A pure function of results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]
USER_TITLES = {
    "held_out": "held-out humans",
    "human": "training humans",
    "naive": "naive user",
    "calibrated": "calibrated user",
}
_OUTCOMES = {"holds": "holds at 95 %", "reversed": "is reversed at 95 %", "undecided": "is undecided at 95 %"}
_NONE = "n/a"


def table(results: Results) -> str:
    """Return the comparison as Markdown: arms, matrix of users, verdict, and how it was measured."""
    parts = [
        f"# {results['env']}: ways to train a dialogue policy",
        _intro(results),
        _arms(results),
        _notes(results),
        "## Every policy with every user",
        _matrix(results),
        *_axis(results),
        *_shift(results),
        *_fidelity(results),
        "## Verdict",
        verdict_text(results),
        "## How it was measured",
        _measured(results),
    ]
    return "\n\n".join(parts)


def shown(estimate: Mapping[str, Any] | None, digits: int = 3) -> str:
    """Return an estimate of results.json as ``0.620 [0.551, 0.690]``."""
    if estimate is None or estimate["value"] is None:
        return _NONE
    if estimate["low"] is None:
        return f"{estimate['value']:.{digits}f}"
    return f"{estimate['value']:.{digits}f} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def verdict_text(results: Results) -> str:
    """Return a line per expectation: what was expected, whether it holds, and the numbers."""
    lines = [_claim(verdict) for verdict in results["verdict"]]
    return "\n".join(lines) or "Too few arms were run to say anything."


def _claim(verdict: Mapping[str, Any]) -> str:
    evidence = "; ".join(f"{name} = {shown(number)}" for name, number in verdict["evidence"].items())
    return f"- *{verdict['claim']}* **{_OUTCOMES[verdict['outcome']]}** ({evidence})"


def _intro(results: Results) -> str:
    seeds, n = results["seeds"], results["dialogues"]
    return (
        f"{results['about']} {results['metric']}, mean [95 % interval] over {seeds} training "
        f"seed{'s' if seeds > 1 else ''} and {n['held_out']} dialogues each on test tasks."
    )


def _arms(results: Results) -> str:
    head = (
        "arm",
        f"{results['metric']}, held-out humans",
        "apparent, own training user",
        "apparent - true",
        "turns",
        "tokens per dialogue",
        "user leaks per turn",
        "unscored",
        "steps",
        "sampled tokens",
    )
    return _markdown(head, [_arm(name, results["arms"][name]) for name in results["policies"]])


def _arm(name: str, arm: Mapping[str, Any]) -> list[str]:
    cost = arm["cost"] or {}
    return [
        name,
        shown(arm["score"]),
        shown(arm["apparent"]),
        shown(arm["gap"]),
        shown(arm["turns"], 2),
        shown(arm["tokens"], 0),
        shown(arm["leaks"]),
        str(arm["unscored"]),
        f"{cost['steps']:.0f}" if cost else _NONE,
        f"{cost['sampled_tokens']:,.0f}" if cost else _NONE,
    ]


def _notes(results: Results) -> str:
    lines = [
        "Turns, tokens and leaks are those with held-out humans. Steps and sampled tokens are means over seeds; static "
        "samples one turn an episode, so it plays more episodes per step for about as many tokens. clone samples none."
    ]
    if "dpo" in results["policies"]:
        lines.append(
            "dpo plays all its dialogues before its steps: it replies to logged histories, and goes on with its user."
        )
    if results["seeds"] == 1:
        lines.append("There is one training seed: the intervals do not contain the variance between training runs.")
    lines += [f"{arm} was left out: {reason}." for arm, reason in results["skipped"].items()]
    return " ".join(lines)


def _matrix(results: Results) -> str:
    users = [user for user in USER_TITLES if any(user in row for row in results["matrix"].values())]
    rows = [[name, *(shown(results["matrix"][name].get(user)) for user in users)] for name in results["policies"]]
    return _markdown(["policy", *(USER_TITLES[user] for user in users)], rows)


def _axis(results: Results) -> list[str]:
    axis = results.get("axis")
    if axis is None:
        return []
    head = [axis["label"], "user in training", "held-out humans", "own user (apparent)", "apparent - true"]
    rows = [
        [f"{row['value']:g}", f"`{row['user']}`", *(shown(row[key]) for key in ("score", "apparent", "gap"))]
        for row in axis["rows"]
    ]
    return [f"## Along the axis: {axis['label']}", _markdown(head, rows)]


def _shift(results: Results) -> list[str]:
    found = results["shift"]
    if not found["points"]:
        return []
    arms = dict.fromkeys(point["arm"] for point in found["points"])
    head = ["arm", "training side", *(f"turn {t}" for t in range(len(found["points"][0]["states"]))), "mean"]
    rows = [_shift_row(arm, [p for p in found["points"] if p["arm"] == arm]) for arm in arms]
    told = found["rank_correlation"]
    lines = [
        "Total variation between the states of contexts on the training side (logs, or dialogues with the own user) "
        "and those of dialogues with held-out humans, mean over seeds: a lower bound of the shift of contexts.",
        f"Rank correlation with the mean shift, over arms and seeds: size of the gap of scores {shown(told['gap'], 2)} "
        f"(n={told['gap']['n']}), score below the oracle {shown(told['regret'], 2)} (n={told['regret']['n']}).",
    ]
    return ["## How far contexts have shifted", lines[0], _markdown(head, rows), lines[1]]


def _fidelity(results: Results) -> list[str]:
    found = results["fidelity"]
    if not any(found.values()):
        return []
    rows = [
        [seed, user, shown(told["replayed"]), shown(told["free"]), ", ".join(told["differs"]) or "none"]
        for seed, users in found.items()
        for user, told in users.items()
    ]
    said = (
        "1 = as close to people as other people are, 0 = as far as can be; people are the humans of the logs, in "
        "dialogues that no training saw. Whole tables are in each seed's fidelity folder."
    )
    head = ["seed", "user", "replayed", "free", "differs from people at 95 % (Holm) in"]
    return ["## How human the users of training are", said, _markdown(head, rows)]


def _shift_row(arm: str, points: Sequence[Mapping[str, Any]]) -> list[str]:
    by_turn = zip(*([turn["value"] for turn in point["states"]] for point in points), strict=True)
    means = [sum(values) / len(values) for values in by_turn]
    side = "logs" if points[0]["pair"] == "policy" else "own user"
    return [arm, side, *(f"{value:.2f}" for value in means), f"{sum(means) / len(means):.2f}"]


def _measured(results: Results) -> str:
    timing, machine = results["timing"], results["machine"]
    interrupted, unscored = len(timing["interrupted"]), results["unscored"]
    lines = [
        f"- Intervals: {results['interval']}. Differences pair dialogues with the same task and user seed.",
        f"- Users: {', '.join(f'{USER_TITLES[name]} `{spec}`' for name, spec in results['users'].items())}.",
        f"- Dialogues that could not be scored, and count in no mean: {sum(unscored.values())}"
        + (f", in {len(unscored)} of the measurements; results.json says in which." if unscored else "."),
        f"- Time: {timing['hours']:.2f} hours"
        + (f", without what {interrupted} interrupted stages lost." if interrupted else "."),
        f"- Machine: {', '.join(f'{name} {value}' for name, value in machine.items() if value is not None)}.",
        f"- duologue {results['package']}. Signatures of all cells are in results.json.",
    ]
    return "\n".join(lines)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in cells)
