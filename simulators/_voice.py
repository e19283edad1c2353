"""How a scripted user puts things: phrase, case, typos, closing."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from duologue.simulators._random import derive_seed, turn_rng, turn_seed
from duologue.simulators._text import starts_with_function_word
from duologue.simulators.personas import Mix, Persona, draw_persona
from duologue.simulators.phrases import PhraseBank, Phrases
from duologue.types import Act, Dialogue, StopReason, UserTurn


@dataclass(frozen=True, slots=True)
class Voice:
    """One persona's way to speak in one turn; uses up the turn's randomness."""

    persona: Persona
    phrases: PhraseBank
    rng: np.random.Generator
    turn_seed: int

    @classmethod
    def of(cls, mix: Mix, dialogue: Dialogue) -> "Voice":
        """Return the voice of the dialogue's user in its next turn."""
        return cls(draw_persona(mix, dialogue.seed), mix.phrases, turn_rng(dialogue), turn_seed(dialogue, bits=128))

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self.rng.random() < probability)

    def vice(self, name: str) -> bool:
        """Return True with the rate of this vice; uses up none of the turn's randomness."""
        rate: float = getattr(self.persona, name)
        return rate > 0 and bool(self.vice_rng(name).random() < rate)

    def vice_rng(self, name: str) -> np.random.Generator:
        """Return a generator that depends on the turn and the name alone."""
        return np.random.default_rng(derive_seed("vice", name, self.turn_seed))

    def talk(self, text: str) -> str:
        """Return the user's own words with typos and without capitals, as the persona has it."""
        text = " ".join(self._mistype(word) for word in text.split(" "))
        return text.lower() if self.persona.lowercase else text

    def phrase(self, options: Phrases) -> str:
        """Return one of the phrases in this persona's manner."""
        return self.talk(options[int(self.rng.integers(len(options)))])

    def quote(self, facts: Iterable[str]) -> str:
        """Return facts with their wording intact, perhaps after a filler; TeX keeps its case."""
        text = " ".join(facts)
        if self.persona.lowercase and not {"$", "\\"} & set(text):
            text = text.lower()
        return self.after_filler(text)

    def after_filler(self, text: str) -> str:
        """Return the text, perhaps after a filler word."""
        if not self.chance(self.persona.talkative):
            return text
        if starts_with_function_word(text):
            text = text[0].lower() + text[1:]
        return f"{self.phrase(self.phrases.lead_in)} {text}"

    def opening(self, text: str) -> UserTurn:
        """Open the dialogue with this text."""
        greeting = f"{self.phrase(self.phrases.greet)} " if self.chance(self.persona.politeness) else ""
        return UserTurn(greeting + self.talk(text), acts=(Act.OPEN,))

    def satisfied(self, accept: Phrases, notes: dict[str, float]) -> UserTurn:
        """Accept with one of the phrases and leave."""
        thanks = self.chance(self.persona.politeness)
        texts = [self.phrase(accept), *([self.phrase(self.phrases.thanks)] if thanks else [])]
        acts = (Act.ACCEPT, *((Act.THANK,) if thanks else ()), Act.STOP)
        return UserTurn(" ".join(texts), StopReason.USER_SATISFIED, acts, {"accept": 1.0, **notes})

    def gives_up(self) -> UserTurn:
        """Leave without what they came for."""
        return UserTurn(self.phrase(self.phrases.give_up), StopReason.USER_GAVE_UP, (Act.STOP,), {"gave_up": 1.0})

    def _mistype(self, word: str) -> str:
        """Swap two letters inside a longer word, at the persona's rate."""
        if len(word) < 5 or not word.isalpha() or not self.chance(self.persona.typo_rate):
            return word
        i = int(self.rng.integers(1, len(word) - 2))
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
