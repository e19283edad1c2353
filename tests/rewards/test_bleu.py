import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.rewards import BleuReward, word_bleu
from duologue.types import Dialogue, Task

DATA = Path(__file__).parents[2].parent / "shared" / "data"
TEXT = "Bees sleep at night. They hold each other by the feet, and some fall out of their flower."


def naive_bleu(document: list[str], reference: list[str]) -> float:
    """BLEU by the book, with exponential smoothing of empty orders and only the orders that the document has."""
    logs, smooth = [], 1.0
    for n in range(1, min(4, len(document)) + 1):
        ours = Counter(tuple(document[i : i + n]) for i in range(len(document) - n + 1))
        theirs = Counter(tuple(reference[i : i + n]) for i in range(len(reference) - n + 1))
        matches = sum((ours & theirs).values())
        if n == 1 and not matches:
            return 0.0
        smooth *= 1 if matches else 2
        logs.append(math.log((matches or 1 / smooth) / ours.total()))
    brevity = min(0.0, 1 - len(reference) / len(document)) if document else 0.0
    return math.exp(math.fsum(logs) / len(logs) + brevity) if logs else 0.0


words = st.lists(st.sampled_from(["bees", "sleep", "at", "night", "and", "some", "fall", "out"]), max_size=25)


@given(words, words.filter(bool))
def test_equals_an_independent_implementation(document: list[str], reference: list[str]) -> None:
    expected = naive_bleu(document, reference)
    assert word_bleu(" ".join(document), " ".join(reference)) == pytest.approx(expected, abs=1e-9)


def test_values_worked_out_by_hand() -> None:
    # 5/6 words, 3/5 pairs, 1/4 triples, no quadruple of 3 (smoothed to 1/2 of one).
    score = word_bleu("the cat is on the mat", "the cat sat on the mat")
    assert score == pytest.approx((5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25)
    # Half the length: precision 1, brevity penalty e^(1 - 2).
    assert word_bleu("a b c d", "a b c d e f g h") == pytest.approx(math.exp(-1))


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_scores_between_0_and_1(document: str, reference: str) -> None:
    assert 0.0 <= word_bleu(document, reference) <= 1.0


@pytest.mark.parametrize(
    ("document", "most"), [("", 0.0), (" \n ", 0.0), ("the " * 200, 0.02), ("Help me write.", 0.02)]
)
def test_degenerate_documents(document: str, most: float) -> None:
    assert word_bleu(document, TEXT) <= most


def test_reward_reads_the_last_document_of_the_assistant() -> None:
    start = Dialogue(Task("t", "Bees", TEXT), seed=0).then("user", f"<document>{TEXT}</document>")
    good = start.then("assistant", "What about?").then("user", TEXT).then("assistant", f"<document>{TEXT}</document>")
    spoilt = good.then("user", TEXT).then("assistant", "<document></document>")
    talk = start.then("assistant", "Hello!")
    assert BleuReward()([good, spoilt, talk, start]) == [1.0, 0.0, 0.0, 0.0]


def test_signature_is_sacrebleus() -> None:
    assert BleuReward().signature.startswith("bleu|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:")


def test_articles_equal_themselves_and_no_other() -> None:
    path = DATA / "articles_18f" / "posts_300_1000.jsonl"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    rows = [json.loads(line) for line in path.read_text().splitlines()[:41]]
    texts = [max((v for v in row.values() if isinstance(v, str)), key=len) for row in rows]
    scores = [word_bleu(one, other) for one, other in pairwise(texts)]
    assert sorted(scores)[len(scores) // 2] < 0.03
    assert all(word_bleu(text, text) == pytest.approx(1.0) for text in texts[:5])
