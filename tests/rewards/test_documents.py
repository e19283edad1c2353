import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.rewards import extract_document
from duologue.rewards.documents import MIN_WORDS

LONG = " ".join(f"word{i}" for i in range(MIN_WORDS))


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("Here: <document>\nBees.\n</document> Good?", "Bees."),
        ("<document>One</document> or <Document>Two</DOCUMENT>", "Two"),
        ("<document>Cut off", "Cut off"),
        ("<document></document>", ""),
        ("<document>Has\n```\ncode\n```\n</document>", "Has\n```\ncode\n```"),
        ("Draft:\n```markdown\nBees.\n```\nOkay?", "Bees."),
        ("```\nOne\n```\ntext\n```\nTwo\n```", "Two"),
        ("```\nOne\n```\ntext\n```\nCut off", "Cut off"),
        ("Sure!\n\n---\n\n# Bees\n\n---\n\nBees sleep.\n\n---\nOkay?", "# Bees\n\n---\n\nBees sleep."),
        (LONG, LONG),
        (f"Here is the draft:\n\n{LONG}\n\nShall I go on?", LONG),
        (f"**Here is the draft:**\n\n{LONG}", LONG),
        (f"Title\n\n{LONG}", f"Title\n\n{LONG}"),
        (f"{LONG}:", f"{LONG}:"),
        (f"{LONG}?", f"{LONG}?"),
        (f"a --- b\n\n---\n\n{LONG}", f"a --- b\n\n---\n\n{LONG}"),
    ],
)
def test_rules(text: str, document: str) -> None:
    assert extract_document([text]) == document


def test_last_message_with_a_document_decides() -> None:
    assert extract_document(["<document>One</document>", LONG, "Fine, bye!"]) == LONG
    assert extract_document([LONG, "<document>Two</document>", "What else?"]) == "Two"


@pytest.mark.parametrize("texts", [[], [""], ["Hello!"], [" ".join(["word"] * (MIN_WORDS - 1))]])
def test_talk_hands_nothing_over(texts: list[str]) -> None:
    assert extract_document(texts) is None


@given(st.lists(st.text(alphabet="`-<document>/ \nab?:", max_size=150), max_size=3))
def test_never_raises(texts: list[str]) -> None:
    document = extract_document(texts)
    assert document is None or document == document.strip()
