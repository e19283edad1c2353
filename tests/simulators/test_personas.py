from dataclasses import fields, replace

import pytest

from duologue.errors import DuologueError
from duologue.simulators.personas import MIXES, Mix, Persona, draw_persona, find_mix
from duologue.simulators.phrases import DEFAULT, HELD_OUT, PhraseBank

RATES = ("miss_error", "doubt_right", "confusion", "volunteers", "talkative", "politeness", "typo_rate", "good_enough")


def every_phrase(bank: PhraseBank) -> set[str]:
    return {
        "".join(c for c in phrase.lower() if c.isalnum() or c == " ").strip()
        for f in fields(bank)
        for phrase in getattr(bank, f.name)
    }


def test_held_out_phrases_are_disjoint_from_default() -> None:
    assert not every_phrase(DEFAULT) & every_phrase(HELD_OUT)


def test_every_purpose_has_several_phrases() -> None:
    for bank in (DEFAULT, HELD_OUT):
        assert all(len(getattr(bank, f.name)) >= 2 for f in fields(bank))


@pytest.mark.parametrize("mix", ["default", "held-out"])
def test_personas_stay_in_their_ranges_and_use_them(mix: str) -> None:
    people = [draw_persona(mix, seed) for seed in range(400)]
    for name in RATES:
        low, high = getattr(MIXES[mix], name)
        values = [getattr(p, name) for p in people]
        assert low <= min(values) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < max(values) <= high
    low_patience, high_patience = MIXES[mix].patience
    assert {p.patience for p in people} == set(range(low_patience, high_patience + 1))
    assert {p.facts_per_turn for p in people} == {1}
    assert {p.points_per_turn for p in people} == {1, 2}
    assert abs(sum(p.lowercase for p in people) / 400 - MIXES[mix].lowercase) < 0.1


def test_mixes_have_different_ranges() -> None:
    differing = [n for n in (*RATES, "patience") if getattr(MIXES["default"], n) != getattr(MIXES["held-out"], n)]
    assert len(differing) == len(RATES) + 1


def test_the_seed_alone_makes_the_person() -> None:
    assert draw_persona("default", 3) == draw_persona("default", 3)
    assert draw_persona("default", 3) != draw_persona("default", 4)
    assert draw_persona("default", -1) != draw_persona("default", 10**30)


def test_personas_are_frozen() -> None:
    with pytest.raises(AttributeError):
        draw_persona("default", 0).patience = 3  # type: ignore[misc]


def test_every_persona_field_is_documented_and_drawn() -> None:
    assert {f.name for f in fields(Persona)} <= {f.name for f in fields(Mix)}


def test_unknown_mix_names_the_nearest() -> None:
    with pytest.raises(DuologueError, match="Did you mean 'held-out'"):
        draw_persona("heldout", 0)


def test_own_mix_passes_through_and_changes_the_signature() -> None:
    own = replace(MIXES["default"], patience=(2, 2))
    assert find_mix(own) is own
    assert draw_persona(own, 5).patience == 2
    assert own.signature != MIXES["default"].signature
