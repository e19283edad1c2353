"""Verdicts and the table say what the numbers say."""

from typing import Any

import pytest

from duologue.analysis.compare.explain import explained
from duologue.analysis.compare.table import shown, table, verdict_text
from duologue.analysis.compare.verdict import outcome, verdicts


def number(value: float | None, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": 10}


def pair(score: dict[str, Any], turns: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"score": score, "turns": turns or number(0.0, -1.0, 1.0)}


UP, DOWN, OPEN = number(0.1, 0.02, 0.2), number(-0.1, -0.2, -0.02), number(0.1, -0.05, 0.25)


def found(**changes: Any) -> dict[str, Any]:
    """Results as they are expected, with changes by pair, such as ``naive_static=pair(DOWN)``."""
    pairs = {
        "static - base": pair(UP),
        "naive - static": pair(UP),
        "oracle - calibrated": pair(UP),
        **{f"calibrated - {rival}": pair(UP, DOWN) for rival in ("base", "clone", "static", "naive")},
    }
    pairs |= {name.replace("_", " - "): value for name, value in changes.items()}
    return {"differences": pairs, "arms": {"naive": {"gap": UP}}}


def by_claim(results: dict[str, Any]) -> dict[str, str]:
    return {verdict["claim"]: verdict["outcome"] for verdict in verdicts(results)}


@pytest.mark.parametrize(
    ("estimate", "sign", "expected"),
    [
        (UP, 1, "holds"),
        (DOWN, 1, "reversed"),
        (OPEN, 1, "undecided"),
        (DOWN, -1, "holds"),
        (UP, -1, "reversed"),
        (OPEN, -1, "undecided"),
        (number(0.0, 0.0, 0.0), 1, "undecided"),
        (number(0.5), 1, "undecided"),
        (number(None), -1, "undecided"),
    ],
)
def test_one_difference(estimate: dict[str, Any], sign: int, expected: str) -> None:
    assert outcome([estimate], sign) == expected


def test_several_differences_hold_together_and_fall_alone() -> None:
    assert outcome([UP, UP]) == "holds"
    assert outcome([UP, OPEN]) == "undecided"
    assert outcome([UP, OPEN, DOWN]) == "reversed"


def test_as_expected() -> None:
    outcomes = by_claim(found())
    assert len(outcomes) == 7
    assert set(outcomes.values()) == {"holds"}


def test_each_claim_follows_its_own_numbers() -> None:
    outcomes = by_claim(found(naive_static=pair(DOWN), oracle_calibrated=pair(OPEN)))
    assert outcomes["static < naive"] == "reversed"
    assert outcomes["calibrated < oracle"] == "undecided"
    assert outcomes["naive < calibrated"] == "holds"


def test_the_best_is_better_than_every_rival() -> None:
    claim = "calibrated is better than base, clone, static, naive"
    assert by_claim(found(calibrated_clone=pair(OPEN, DOWN)))[claim] == "undecided"
    assert by_claim(found(calibrated_clone=pair(DOWN, DOWN)))[claim] == "reversed"


def test_fewer_turns_means_below() -> None:
    outcomes = by_claim(found(calibrated_naive=pair(UP, UP), calibrated_static=pair(UP, OPEN)))
    assert outcomes["calibrated needs fewer turns than naive"] == "reversed"
    assert outcomes["calibrated needs fewer turns than static"] == "undecided"


def test_arms_that_were_not_run_make_no_claims() -> None:
    assert verdicts({"differences": {}, "arms": {}}) == []
    assert verdict_text({"verdict": []}) == "Too few arms were run to say anything."
    only = {"differences": {"naive - static": pair(UP)}, "arms": {}}
    assert [verdict["claim"] for verdict in verdicts(only)] == ["static < naive"]


def test_the_text_carries_the_numbers() -> None:
    text = verdict_text({"verdict": verdicts({"differences": {"naive - static": pair(DOWN)}, "arms": {}})})
    assert text == "- *static < naive* **is reversed at 95 %** (naive - static, score = -0.100 [-0.200, -0.020])"


def test_shown() -> None:
    assert shown(UP, 2) == "0.10 [0.02, 0.20]"
    assert shown(number(0.5)) == "0.500"
    assert shown(None) == shown(number(None)) == "n/a"


def shifted(seed: int, shift: float) -> dict[str, Any]:
    states = [{"value": 0.0}, {"value": 2 * shift}]
    return {
        "arm": "naive",
        "seed": seed,
        "pair": "simulator",
        "states": states,
        "shift": shift,
        "gap": UP,
        "regret": None,
    }


def results(seeds: int = 1) -> dict[str, Any]:
    arm = {
        "trained_with": None,
        "score": UP,
        "apparent": None,
        "gap": None,
        "turns": UP,
        "tokens": None,
        "leaks": UP,
        "unscored": 0,
        "cost": None,
    }
    naive = {
        **arm,
        "trained_with": "naive",
        "apparent": UP,
        "gap": OPEN,
        "cost": {"steps": 2, "sampled_tokens": 4321.0},
    }
    made: dict[str, Any] = {
        "env": "MathChat-v0",
        "metric": "accuracy",
        "about": "A test.",
        "package": "0",
        "seeds": seeds,
        "dialogues": {"held_out": 10, "others": 5},
        "interval": "95 %",
        "policies": ["base", "naive"],
        "users": {"held_out": "scripted:held-out", "human": "scripted", "naive": "a|b"},
        "skipped": {"proactive": "no instructions"},
        "arms": {"base": arm, "naive": naive},
        "matrix": {"base": {"held_out": UP}, "naive": {"held_out": UP, "naive": DOWN}},
        "differences": {},
        "fidelity": {"seed-0": {"naive": {"replayed": UP, "free": DOWN, "differs": ["leaks (free)"]}}},
        "shift": explained([shifted(0, 0.1), shifted(1, 0.3)]),
        "unscored": {"seed-0/evaluate/base--naive": 3},
        "timing": {"hours": 1.5, "seconds": {}, "interrupted": ["seed-0/naive"]},
        "machine": {"cores": 2, "gpu": None},
    }
    return {**made, "verdict": verdicts(made)}


def test_the_table() -> None:
    text = table(results())
    assert "| naive | 0.100 [0.020, 0.200] | 0.100 [0.020, 0.200] | 0.100 [-0.050, 0.250] |" in text
    assert "| 2 | 4,321 |" in text
    assert "| policy | held-out humans | naive user |" in text
    assert "| base | 0.100 [0.020, 0.200] | n/a |" in text
    assert "proactive was left out: no instructions." in text
    assert "naive scores higher with its own user than with held-out users* **is undecided" in text
    assert "without what 1 interrupted stages lost" in text
    assert "count in no mean: 3, in 1 of the measurements" in text
    assert "gpu" not in text
    assert "| seed-0 | naive | 0.100 [0.020, 0.200] | -0.100 [-0.200, -0.020] | leaks (free) |" in text
    assert "| naive | own user | 0.00 | 0.40 | 0.20 |" in text
    assert "size of the gap of scores n/a (n=2)" in text


def test_one_seed_is_said_to_be_one() -> None:
    warning = "the intervals do not contain the variance between training runs"
    assert warning in table(results(1))
    assert warning not in table(results(3))
