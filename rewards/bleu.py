"""Word BLEU of the last document against the goal document, by sacreBLEU."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from duologue.rewards.documents import extract_document
from duologue.types import Dialogue

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU


@lru_cache(maxsize=1)
def _metric() -> "BLEU":
    """Return sacreBLEU's sentence metric. Imported late: it takes as long as everything else in this package."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)


def word_bleu(document: str, reference: str) -> float:
    """Return sentence-level word BLEU in [0, 1]: sacreBLEU's 13a words, orders up to 4 that the document has.

    Args:
        document: the text to judge; an empty one scores 0.
        reference: the goal.
    """
    return min(_metric().sentence_score(document, [reference]).score / 100, 1.0)


class BleuReward:
    """Scores the last document handed over by word BLEU against ``task.reference``, in [0, 1]; without one, 0.

    A document of any kind scores what sacreBLEU says. ``duologue.rewards.documents`` states what counts as one.
    """

    def __call__(self, dialogues: Sequence[Dialogue], /) -> list[float | None]:
        """Return one score per dialogue, in order."""
        return [word_bleu(extract_document(d.said_by("assistant")) or "", d.task.reference) for d in dialogues]

    @property
    def signature(self) -> str:
        """Return sacreBLEU's signature behind the reward's name."""
        word_bleu("a", "a")  # sacreBLEU signs only after a first score, which tells it the number of references
        return f"bleu|{_metric().get_signature()}"
