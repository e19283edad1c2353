"""How likely contexts are to a fixed reference model: a scale that two sets of contexts can be put on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from duologue.analysis.shift.states import reached
from duologue.analysis.user_rates import Seen
from duologue.trainers.stats import Estimate, difference
from duologue.types import Message

if TYPE_CHECKING:
    from duologue.engines.chat import ChatFormat
    from duologue.engines.models import LoadedModel


class Reference(Protocol):
    """A model that says how likely the contexts of a dialogue are."""

    @property
    def signature(self) -> str:
        """Return a short string that says which model this is."""
        ...

    def scores(self, messages: Sequence[Message]) -> list[float | None]:
        """Return, for each user message, the mean log-likelihood in nats of a token of the history up to it.

        None where the history is longer than the model can read.
        """
        ...


class ReferenceModel:
    """A language model as a reference. One forward pass a dialogue, as its contexts are prefixes of each other.

    Args:
        name: what ``load_model`` takes: ``"default"``, a folder, a Hugging Face id.

    Raises:
        DuologueError: if there is no such model, or it has no chat template.
        MissingExtraError: without torch and transformers.
    """

    def __init__(self, name: str) -> None:
        from duologue.engines.chat import ChatFormat
        from duologue.engines.models import load_model

        self._loaded: LoadedModel = load_model(name)
        self._chat: ChatFormat = ChatFormat(self._loaded.tokenizer)

    @property
    def signature(self) -> str:
        """Return the model's name, dtype and hash."""
        return self._loaded.signature

    def scores(self, messages: Sequence[Message]) -> list[float | None]:
        """Return the mean log-likelihood of a token of each context: the template's too, without the first."""
        import torch

        ids, ends = self._layout(messages)
        limit = getattr(self._loaded.model.config.get_text_config(), "max_position_embeddings", len(ids))
        ids = ids[:limit]
        with torch.no_grad():
            row = torch.tensor([ids], device=self._loaded.model.device)
            logits = self._loaded.model(input_ids=row, use_cache=False).logits[0, :-1].float()
            nats = logits.gather(1, row[0, 1:, None])[:, 0] - logits.logsumexp(dim=-1)
        told = nats.double().cumsum(0).tolist()
        return [told[end - 2] / (end - 1) if end <= len(ids) else None for end in ends]

    def _layout(self, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
        """Return the dialogue's tokens, and how many of them each context has."""
        ids, ends = self._chat.opening_ids(messages[:1]), []
        for message in messages[1:]:
            if message["role"] == "assistant":
                ends.append(len(ids))
                ids = [*ids, *self._chat.text_ids(message["content"]), self._chat.end_of_turn_id]
            else:
                ids = [*ids, *self._chat.user_suffix_ids(message["content"])]
        return ids, ends if messages[-1]["role"] == "assistant" else [*ends, len(ids)]


Scores = dict[int, list[float | None]]
"""Mean log-likelihood of each context of each dialogue, by the dialogue's seed."""


def score_all(reference: Reference, dialogues: Sequence[Seen], on_each: Callable[[], None]) -> Scores:
    """Return the scores of dialogues by their seeds; ``on_each`` is called after each dialogue."""
    found: Scores = {}
    for seen in dialogues:
        found[seen.episode.seed] = reference.scores(seen.messages)
        on_each()
    return found


def likelihood_difference(a: Sequence[Seen], b: Sequence[Seen], scores: tuple[Scores, Scores], turn: int) -> Estimate:
    """Return the mean log-likelihood of a token of a's contexts at a turn, less that of b's, in nats.

    Only dialogues that reached the turn count. Above 0: the reference finds a's contexts more likely. Contexts that
    differ can be equally likely, so 0 does not mean that there is no shift; and the size depends on the reference. It
    is neither a divergence nor a bound of one.

    Args:
        a: one side.
        b: the other side; dialogues of one seed are paired (see ``stats.difference``).
        scores: of each side, by seed.
        turn: from 0.
    """
    return difference(_at(a, scores[0], turn), _at(b, scores[1], turn))


def _at(dialogues: Sequence[Seen], scores: Scores, turn: int) -> dict[int, float]:
    found = ((s.episode.seed, scores[s.episode.seed][turn]) for s in dialogues if reached(s, turn))
    return {seed: score for seed, score in found if score is not None}
