"""The table of measures: every row's name, unit, definition and direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from duologue.analysis.fidelity import conduct, form
from duologue.analysis.fidelity.counting import Kind
from duologue.analysis.fidelity.diversity import SAMPLED, TOKENS, Distinct, PairwiseBleu, Statistic
from duologue.analysis.fidelity.form import Count, rate, says
from duologue.types import Act

Mode = Literal["replayed", "free"]
Block = Literal["form", "acts", "judgement", "telling apart"]
MODES: tuple[Mode, ...] = ("replayed", "free")
AS_PEOPLE = "as people"


@dataclass(frozen=True, slots=True)
class Measure:
    """One row. Exactly one of ``count`` and ``statistic`` says how it is taken."""

    name: str
    block: Block
    unit: str
    definition: str
    direction: str = AS_PEOPLE
    """Which way is better: as people, lower or higher."""
    modes: tuple[Mode, ...] = MODES
    distance: Kind | None = "jensen-shannon"
    """How far from people; None = described, but not compared (the people's value is fixed by definition)."""
    count: Count | None = None
    statistic: Statistic | None = None


def measures(listed: frozenset[str] = frozenset(), seed: int = 0) -> tuple[Measure, ...]:
    """Return the rows in order.

    Args:
        listed: words that count as spelled well.
        seed: of the sample of pairwise BLEU.
    """
    return (*_form(listed, seed), *_acts(), *_judgement())


def _form(listed: frozenset[str], seed: int) -> list[Measure]:
    turn = "share of turns"
    return [
        Measure(
            "words per turn",
            "form",
            "words",
            "Words by blanks, of turns that say something.",
            distance="wasserstein",
            count=form.words_per_turn,
        ),
        Measure(
            "turns per dialogue",
            "form",
            "turns",
            "User turns that say something.",
            modes=("free",),
            distance="wasserstein",
            count=form.turns_per_dialogue,
        ),
        Measure("questions", "form", turn, "A sentence asks for something, in form.", count=rate(form.asks, says)),
        Measure("negations", "form", turn, "Holds a word of negation.", count=rate(form.negates, says)),
        Measure(
            "unlisted words",
            "form",
            "share of words",
            "Words of 3 letters or more that neither the assistant nor a task writes: typos, and rarer words.",
            count=form.unlisted(listed),
        ),
        Measure("distinct-1", "form", "share", f"Different words among {TOKENS} (rarefied).", statistic=Distinct(1)),
        Measure("distinct-2", "form", "share", f"Different word pairs among {TOKENS}.", statistic=Distinct(2)),
        Measure(
            "pairwise BLEU",
            "form",
            "0 to 1",
            f"Self-BLEU in pairs: a turn against one of another dialogue, up to {SAMPLED} dialogues.",
            statistic=PairwiseBleu(seed),
        ),
    ]


def _acts() -> list[Measure]:
    shown = (Act.ASK, Act.REVEAL, Act.CONFUSED, Act.ACCEPT, Act.REJECT, Act.CORRECT, Act.THANK)
    unit, rules = "share of turns", "By the rules of label_acts."
    return [
        *(Measure(f"act: {act.value}", "acts", unit, rules, count=conduct.does(act)) for act in shown),
        Measure(
            "act: stop", "acts", unit, f"{rules} Dialogues of which it is known how they ended.", count=conduct.leaves
        ),
    ]


def _judgement() -> list[Measure]:
    return [
        Measure(
            "wrong accepted",
            "judgement",
            "share of wrong offers",
            "A wrong answer or poor draft is accepted.",
            count=rate(conduct.accepts_wrong, conduct.saw_wrong),
        ),
        Measure(
            "right refused",
            "judgement",
            "share of right offers",
            "A right answer or good draft is not accepted.",
            count=rate(conduct.refuses_right, conduct.saw_right),
        ),
        Measure(
            "leaks",
            "judgement",
            "share of chances",
            "Gives the reference away before the assistant had it.",
            count=rate(conduct.gives_away, conduct.can_leak),
        ),
        Measure(
            "role flips",
            "judgement",
            "share of turns",
            "Talks like the assistant.",
            count=rate(conduct.talks_like_assistant, says),
        ),
        *_stops(),
    ]


def _stops() -> list[Measure]:
    """Return the rows that set a user's leaving beside the person's, at the same history."""
    beside = partial(Measure, block="judgement", modes=("replayed",), distance=None)
    return [
        beside(
            "stop precision",
            unit="share of stops",
            definition="Of the user's stops: the person left there too.",
            direction="higher",
            count=conduct.stops_with_the_person,
        ),
        beside(
            "stop recall",
            unit="share of the person's stops",
            definition="Where the person left: the user does too.",
            direction="higher",
            count=rate(conduct.stops, conduct.person_stops),
        ),
        beside(
            "premature stops",
            unit="share of turns",
            definition="The user leaves where the person went on.",
            direction="lower",
            count=rate(conduct.stops, lambda turn: conduct.could_leave(turn) and turn.person_stops is False),
        ),
    ]
