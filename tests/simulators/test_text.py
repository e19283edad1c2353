from fractions import Fraction

import pytest

from duologue.errors import DuologueError
from duologue.simulators._random import derive_seed, turn_rng, turn_seed
from duologue.simulators._text import by_relevance, content_words, covered, last_reply, numbers, question_in, told
from duologue.types import Dialogue, Task

FACTS = ("Tom has 3 red apples.", "Tom has 3 green apples in his big basket.", "Each pear costs $1,200.50.")


def dialogue(*texts: str) -> Dialogue:
    d = Dialogue(Task("t", "How many apples?", "6", facts=FACTS), 0)
    for i, text in enumerate(texts):
        d = d.then("assistant" if i % 2 else "user", text)
    return d


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("12 apples and 1,000 pears", {12, 1000}),
        ("half is 1/2, not 0.25", {Fraction(1, 2), Fraction(1, 4)}),
        ("two dozen, that is twenty", {2, 20}),
        ("5-3 is not -3", {5, 3, -3}),
        ("$4.50 each.", {Fraction(9, 2)}),
        ("division by zero 1/0", set()),
        ("", set()),
    ],
)
def test_numbers(text: str, values: set[Fraction]) -> None:
    assert numbers(text) >= values
    assert numbers(text) - values <= {Fraction(-3)}


def test_content_words_ignore_plural_and_function_words() -> None:
    assert content_words("The apples of Tom's two aunts") == {"apple", "tom", "2", "aunt"}


@pytest.mark.parametrize("text", ["How many?", "Tell me the price.", "Sure! Please provide the weight", "What is it"])
def test_questions_are_found(text: str) -> None:
    assert question_in(text)


@pytest.mark.parametrize("text", ["", "?", "I see.", "The answer is 3.", "Multiply 2.5 by 4 first."])
def test_other_texts_are_no_questions(text: str) -> None:
    assert question_in(text) == ""


def test_only_the_asking_sentence_counts() -> None:
    assert question_in("Pears are nice. How many apples are there?") == "How many apples are there?"


def test_quoted_fact_is_told_and_its_near_twin_is_not() -> None:
    assert told(dialogue("hi", "how many?", "um, tom has 3 red apples"), FACTS) == {0}


def test_number_inside_a_longer_one_is_not_the_fact() -> None:
    assert told(dialogue("hi", "how many?", "tom has 13 red apples"), FACTS[:1]) == set()


def test_a_persons_bare_number_tells_what_was_asked() -> None:
    history = dialogue("hi", "What does each pear cost?", "1200.5")
    assert told(history, FACTS) == {2}


def test_a_paraphrase_needs_the_numbers() -> None:
    assert told(dialogue("hi", "and?", "a pear costs 1,200.50 dollars each"), FACTS) == {2}
    assert told(dialogue("hi", "and?", "a pear costs a lot"), FACTS) == set()


def test_assistant_text_tells_nothing() -> None:
    assert told(dialogue("hi", " ".join(FACTS)), FACTS) == set()


def test_relevance_puts_the_asked_fact_first() -> None:
    assert by_relevance(FACTS, [0, 1, 2], "What does a pear cost?") == [2, 0, 1]
    assert by_relevance(FACTS, [0, 1, 2], "Anything else?") == [0, 1, 2]


def test_covered_is_measured_against_the_goal() -> None:
    goal = "We left at 9 and walked to the old mill."
    assert covered("Departure was at 9.", goal, goal) is True
    assert covered("We walked to the mill.", "We walked to the pub at 9.", goal) is False
    assert covered("Why it mattered", goal, goal) is None


def test_last_reply_refuses_a_users_message() -> None:
    with pytest.raises(DuologueError, match="Append the assistant's reply"):
        last_reply(dialogue("hi"))


def test_turn_randomness_depends_on_seed_task_and_turn() -> None:
    d = dialogue("hi", "yes?")
    others = [dialogue("hi"), Dialogue(d.task, 1, d.messages), Dialogue(Task("u", "", ""), 0, d.messages)]
    assert len({turn_seed(x) for x in [d, *others]}) == 4
    assert turn_rng(d).random() == turn_rng(d).random()
    assert 0 <= turn_seed(d) < 2**31


def test_seeds_are_the_same_in_every_process() -> None:
    assert derive_seed("persona", 7) == 0xFE5B0DF79679AB0B0A4CBF5041F7D3E8
    assert derive_seed("a", 1) != derive_seed("a", "1")
