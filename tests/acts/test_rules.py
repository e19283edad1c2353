"""The rules of dialogue acts: an example a row, what holds a rule back, and texts that nobody would write."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.analysis.acts import label_acts, lets_pass
from duologue.analysis.acts.reading import Reading
from duologue.analysis.acts.rules import RULES
from duologue.simulators import ScriptedDocumentUser, ScriptedMathUser
from duologue.simulators.phrases import DEFAULT, HELD_OUT, PhraseBank
from duologue.types import Act, Dialogue, Message, StopReason, Task

SUM = Task("sum", "How many apples do Ann and Bob have?", "7")
TRAIN = Task("train", "A train leaves Berlin at noon and drives to Munich at a speed of 90. When is it there?", "6")
TOLD = Task("told", "How many apples do they have?", "7", facts=("Ann has 3 apples.", "Bob has 4 apples."))
POST = Task("post", "I want to write about my bicycle.", "word " * 40)
DRAFT = "Here is a draft. " + "The bicycle is a fine machine for short rides. " * 8
QUIZ = "Good. What is 3 + 4?"
ANSWER = "They have 8 apples."

EXAMPLES: dict[str, tuple[Task, str | None, str]] = {
    "first": (SUM, None, "Good evening."),
    "question": (SUM, ANSWER, "Where does the 8 come from?"),
    "order": (SUM, ANSWER, "Show me the next step."),
    "task": (TRAIN, None, "a train leaves Berlin at noon, at speed 90, to Munich"),
    "fact": (TOLD, "How many has Ann?", "Ann has 3 apples."),
    "statement": (SUM, QUIZ, "7"),
    "yes or no": (SUM, "Is 7 a prime?", "yes"),
    "own step": (SUM, ANSWER, "Should I add 3 and 4?"),
    "content": (POST, DRAFT, "Please mention that Petra repaired the brakes."),
    "option": (SUM, "Take option 1 or option 2.", "option 2 please"),
    "confusion": (SUM, ANSWER, "Sorry, I don't understand."),
    "cannot": (SUM, "Can you find the sum?", "no"),
    "agreement": (SUM, ANSWER, "Yes, that makes sense."),
    "satisfied": (SUM, ANSWER, ""),
    "objection": (SUM, ANSWER, "No, that can't be right."),
    "change": (POST, DRAFT, "Make it shorter."),
    "should be": (SUM, ANSWER, "It should be 7, not 8."),
    "thanks": (SUM, ANSWER, "Thank you so much!"),
    "stop reason": (SUM, ANSWER, ""),
    "farewell": (SUM, ANSWER, "That's all, bye."),
}


def history(reply: str | None) -> tuple[Message, ...]:
    if reply is None:
        return ()
    return (Message(role="user", content="Can you help?"), Message(role="assistant", content=reply))


def acts(task: Task, reply: str | None, text: str, stop: StopReason | None = None) -> set[str]:
    return {act.value for act in label_acts(task, history(reply), text, stop)}


def test_every_rule_has_an_example() -> None:
    assert [rule.name for rule in RULES] == list(EXAMPLES)
    assert {rule.act for rule in RULES} == set(Act)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_holds_for_its_example_and_not_for_small_talk(rule: object) -> None:
    row = next(one for one in RULES if one is rule)
    task, reply, text = EXAMPLES[row.name]
    stop = None if text else StopReason.USER_SATISFIED
    assert row.holds(Reading(task, history(reply), text, stop))
    assert row.act in label_acts(task, history(reply), text, stop)
    assert not row.holds(Reading(POST, history("Hello."), "Wow!", None))


@pytest.mark.parametrize(
    ("task", "reply", "text", "expected"),
    [
        (SUM, QUIZ, "4x3?", {"reveal"}),
        (SUM, ANSWER, "is it 7?", {"ask", "reveal"}),
        (SUM, QUIZ, "add the two numbers", {"reveal"}),
        (SUM, ANSWER, "add the two numbers", {"ask"}),
        (SUM, "Does this make sense?", "yes", {"accept"}),
        (SUM, "Is 7 odd?", "No it isn't", {"reveal"}),
        (SUM, ANSWER, "Are you sure? I get 7.", {"ask", "reject", "reveal"}),
        (SUM, ANSWER, "no problem", set()),
        (SUM, ANSWER, "That doesn't make sense to me.", {"confused"}),
        (SUM, ANSWER, "That isn't right.", {"reject"}),
        (SUM, ANSWER, "Ok, what is next?", {"accept", "ask"}),
        (SUM, ANSWER, "I\u2019m lost", {"confused"}),
        (SUM, None, "Let $x$ be a number. Show that it is even.", {"open", "ask"}),
        (SUM, None, "", {"open"}),
        (SUM, ANSWER, "", set()),
        (POST, None, "I need help with a thank you note.", {"open", "ask"}),
        (POST, DRAFT, "Great, but cut it to 100 words.", {"accept", "ask", "correct"}),
        (POST, "What should it say?", "Make it shorter.", {"ask"}),
        (POST, DRAFT, "Do you have any ideas?", {"ask"}),
        (POST, DRAFT, "My sister's name is Petra.", {"reveal"}),
        (POST, DRAFT, "It's too formal.", {"reject"}),
        (TOLD, "How many has Ann?", "I think my neighbour Carl keeps bees.", set()),
        (TOLD, "How many has Bob?", "Bob has 4 apples, I think.", {"reveal"}),
    ],
)
def test_edges(task: Task, reply: str | None, text: str, expected: set[str]) -> None:
    assert acts(task, reply, text) == expected


@pytest.mark.parametrize("stop", [None, *StopReason])
def test_only_the_user_s_own_stop_is_an_act(stop: StopReason | None) -> None:
    expected = {Act.STOP} if stop is not None and stop.is_terminal else set()
    assert label_acts(SUM, history(ANSWER), "", stop) == expected | (
        {Act.ACCEPT} if stop is StopReason.USER_SATISFIED else set()
    )


def test_a_fact_is_told_once() -> None:
    before = (*history("How many has Ann?"), Message(role="user", content="Ann has 3 apples."))
    again = (*before, Message(role="assistant", content="Again, please?"))
    assert Act.REVEAL not in label_acts(TOLD, again, "Ann has 3 apples.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes, that's right.", True),
        ("Thanks!", False),
        ("Ok, but why?", False),
        ("Looks good, just make it shorter.", False),
        ("Right, but I'm lost.", False),
    ],
)
def test_what_lets_an_answer_pass(text: str, expected: bool) -> None:
    assert lets_pass(SUM, history(ANSWER), text) is expected


@pytest.mark.parametrize("bank", [DEFAULT, HELD_OUT])
def test_the_phrases_of_scripted_users(bank: PhraseBank) -> None:
    def share(phrases: Sequence[str], act: Act, task: Task, reply: str) -> float:
        return sum(act in label_acts(task, history(reply), phrase) for phrase in phrases) / len(phrases)

    assert share(bank.accept, Act.ACCEPT, SUM, ANSWER) == 1.0
    assert share(bank.accept_draft, Act.ACCEPT, POST, DRAFT) == 1.0
    assert share(bank.thanks, Act.THANK, SUM, ANSWER) == 1.0
    assert share([*bank.reject, *bank.doubt, *bank.not_it], Act.REJECT, SUM, ANSWER) == 1.0
    assert share(bank.give_up, Act.STOP, SUM, ANSWER) == 1.0
    assert share(bank.confused, Act.CONFUSED, SUM, ANSWER) > 0.8
    assert share([*bank.reject, *bank.doubt, *bank.not_it], Act.ACCEPT, SUM, ANSWER) == 0.0


@pytest.mark.parametrize("user", [ScriptedMathUser("default"), ScriptedDocumentUser("default")])
def test_scripted_openings_and_answers(user: ScriptedMathUser | ScriptedDocumentUser) -> None:
    opened = [Dialogue(TOLD, seed) for seed in range(20)]
    for dialogue, turn in zip(opened, user.respond(opened), strict=True):
        assert Act.OPEN in label_acts(TOLD, (), turn.text)
        assert (Act.REVEAL in turn.acts) == (Act.REVEAL in label_acts(TOLD, (), turn.text)), turn.text
        assert dialogue.messages == ()


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from([SUM, TOLD, POST]), st.booleans())
def test_any_text_has_acts(text: str, reply: str, task: Task, first: bool) -> None:
    found = label_acts(task, () if first else history(reply), text)
    assert found <= set(Act)
    assert (Act.OPEN in found) == first
    assert label_acts(task, () if first else history(reply), text) == found


@pytest.mark.parametrize(
    "unit", ["no ", "ok, ", "oh hm ", "a", "?", ".", "( ", "is it ", "not \n", "you ", "1,", "very very "]
)
def test_long_monotonous_texts_end(unit: str) -> None:
    assert label_acts(POST, history(DRAFT), unit * 3000) <= set(Act)
