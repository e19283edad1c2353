"""A scripted assistant for notices, mediocre on purpose: the behaviour policy of logs that we make ourselves."""

from __future__ import annotations

import re
from collections.abc import Sequence

from duologue.envs.tasks.notice_families import FAMILIES, Family, Slot
from duologue.envs.tasks.notices import WORDING
from duologue.trainers.scripted_agent import history_rng
from duologue.types import Message


class HastyWriterAgent:
    """Asks what a notice should say and writes it, but often hands it over before it has heard everything.

    Made for ``NoticeTasks``. Its skill is to know the kinds of notices; topic and values it takes from the user's
    messages alone. Where it does not know a value it writes around it. Its randomness comes from the history alone, so
    the same dialogue gets the same reply.
    """

    def __init__(self, haste: float = 0.5, seed: int = 0) -> None:
        """Make an agent.

        Args:
            haste: probability, in each turn, of handing over a notice although something is missing.
            seed: makes another agent with the same habits.
        """
        self.haste, self.seed = haste, seed
        self.__qualname__ = f"hasty-writer(haste={haste:g},seed={seed},wording={WORDING})"

    def __call__(self, messages: Sequence[Message]) -> str:
        """Return the next reply."""
        said = [m["content"] for m in messages if m["role"] == "user"]
        family = _family_of(said[0])
        values = _heard(family, said[1:])
        if len(values) < len(family.slots) and history_rng(self.seed, messages).random() >= self.haste:
            return "What else should it say?" if values else "What should it say?"
        return f"<document>{write_notice(family, _topic_of(family, said[0]), values)}</document>"


def write_notice(family: Family, topic: str, values: dict[str, str]) -> str:
    """Return a notice with the values that are known, by slot, and something vague for the others."""
    blanks = {slot.name: slot.blank for slot in family.slots}
    return family.text.format(topic=topic, **(blanks | values))


def _family_of(opening: str) -> Family:
    """Return the kind whose request shares most words with the opening, which may hold typos."""
    said = set(re.findall(r"\w+", opening.lower()))
    return max(FAMILIES, key=lambda family: len(said & set(re.findall(r"\w+", _frame(family).lower()))))


def _frame(family: Family) -> str:
    return family.request.format(topic="")


def _topic_of(family: Family, opening: str) -> str:
    """Return what stands between the two words before the topic and those after it, or else the first topic."""
    before, _, after = family.request.partition("{topic}")
    lead = " ".join(before.split()[-2:])
    pattern = rf"{re.escape(lead)} ([^.]+){re.escape(after)}"
    found = re.findall(pattern, opening, re.IGNORECASE)
    return found[-1].strip() if found else family.topics[0]


def _heard(family: Family, said: Sequence[str]) -> dict[str, str]:
    """Return the values that the user has told, by slot; the latest counts."""
    found = {slot.name: re.findall(_pattern(slot), " ".join(said), re.IGNORECASE) for slot in family.slots}
    return {name: values[-1] for name, values in found.items() if values}


def _pattern(slot: Slot) -> str:
    before, _, after = slot.fact.partition("{}")
    return rf"\b{re.escape(before)}([^.]+){re.escape(after)}"
