"""Turns of logs and episodes, and the measures that are read off them."""

from collections import Counter

import pytest

from duologue.analysis.fidelity import form
from duologue.analysis.fidelity.measures import measures
from duologue.analysis.fidelity.turns import Judged, Talk, Turn, talk_of_episode, talk_of_log, unprompted
from duologue.simulators.leaks import leakable
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Act, Episode, Message, StopReason, Task

TASK = Task("t", "How many apples do they have?", "5", facts=("Tom has 2 apples.", "Ann has 3 apples."))
MATH = "MathChat-v0"
LEFT = StopReason.USER_SATISFIED


def log(*texts: str, stop: StopReason | None = LEFT) -> LoggedDialogue:
    return LoggedDialogue("d", TASK, said(*texts), stop)


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(texts))


def counted(name: str, *turns: Turn, end_known: bool = True) -> Counter[float]:
    [measure] = [m for m in measures(frozenset({"apples", "tom"})) if m.name == name]
    assert measure.count is not None
    return measure.count(Talk("d", turns, end_known))


def turn(text: str, *history: str, stop: StopReason | None = None, person_stops: bool | None = None) -> Turn:
    return Turn(MATH, TASK, said(*history), text, stop, person_stops)


def test_a_log_s_turns_know_where_the_person_left() -> None:
    talk = talk_of_log(log("Hi", "The answer is 5.", "Thanks!"), MATH)
    assert [(t.text, t.stop, t.person_stops, len(t.history)) for t in talk.turns] == [
        ("Hi", None, False, 0),
        ("Thanks!", LEFT, True, 2),
    ]
    assert talk.end_known


def test_who_left_without_a_word_has_a_turn_of_no_text() -> None:
    talk = talk_of_log(log("Hi", "The answer is 5."), MATH)
    assert (talk.turns[-1].text, talk.turns[-1].stop) == ("", LEFT)
    assert talk.texts == ["Hi"]


def test_where_nobody_knows_the_end_the_last_message_is_not_judged_but_counts() -> None:
    talk = talk_of_log(log("Hi", "What?", "2 apples", stop=None), MATH)
    assert [t.text for t in talk.turns] == ["Hi"]
    assert (talk.end_known, talk.left_out) == (False, 1)
    assert form.turns_per_dialogue(talk) == Counter({2.0: 1})
    assert counted("act: stop", *talk.turns, end_known=False) == Counter()


def test_an_episode_s_last_turn_carries_the_user_s_stop() -> None:
    texts = said("Hi", "The answer is 5.", "Ok bye")
    ended = talk_of_episode(Episode(MATH, "t", 3, texts, LEFT, 1.0), TASK)
    cut = talk_of_episode(Episode(MATH, "t", 3, texts, StopReason.TURN_LIMIT, 0.0), TASK)
    assert [t.stop for t in ended.turns] == [None, LEFT]
    assert [t.stop for t in cut.turns] == [None, None]
    assert ended.turns[0].person_stops is None


def test_without_knowledge_of_the_person_stops_are_not_compared() -> None:
    [talk] = unprompted([talk_of_log(log("Hi", "The answer is 5.", "Thanks!"), MATH)])
    assert counted("stop precision", *talk.turns) == Counter()
    assert counted("stop recall", *talk.turns) == Counter()
    assert counted("premature stops", *talk.turns) == Counter()


def test_stops_against_the_person_s() -> None:
    turns = (
        turn("a", stop=LEFT, person_stops=False),
        turn("b", "x", "y", stop=LEFT, person_stops=True),
        turn("c", "x", "y", person_stops=True),
        turn("d", "x", "y", person_stops=False),
        turn("e", "x", "y", stop=LEFT, person_stops=False),
    )
    assert counted("stop precision", *turns) == Counter({0.0: 2, 1.0: 1})
    assert counted("stop precision", turns[3], turns[4], end_known=False) == Counter()  # could be nothing but 0
    assert counted("stop recall", *turns) == Counter({0.0: 1, 1.0: 1})
    assert counted("premature stops", *turns) == Counter({0.0: 1, 1.0: 1})  # nobody leaves with an opening


@pytest.mark.parametrize(
    ("name", "hit", "miss"),
    [
        ("questions", turn("What is that?"), turn("Ok.")),
        ("negations", turn("I don't know"), turn("I know nothing's wrong? Knot.")),
        ("role flips", turn("How can I help you today?"), turn("Help me.")),
        ("leaks", turn("It is 5."), turn("It is 6.")),
        ("act: stop", turn("Bye", "a", "b", stop=LEFT), turn("Tom has 2 apples.", "a", "What does Tom have?")),
    ],
)
def test_rates(name: str, hit: Turn, miss: Turn) -> None:
    if name == "negations":
        miss = turn("I know it. Knot.")
    assert counted(name, hit, miss) == Counter({1.0: 1, 0.0: 1})


def test_words_and_unlisted_words() -> None:
    turns = (turn("Tom has 2 aples"), turn("", "a", "b", stop=LEFT))
    assert counted("words per turn", *turns) == Counter({4.0: 1})
    assert counted("unlisted words", *turns) == Counter({0.0: 1, 1.0: 2})  # has, aples
    listed = form.word_list([log("Whaat", "Use apples.", "ok")])
    assert {"use", "apples", "tom", "have"} <= listed
    assert "whaat" not in listed


def test_judgement_is_that_of_user_rates() -> None:
    wrong, right = ("Hi", "The answer is 7."), ("Hi", "The answer is 5.")
    assert turn("Great, thanks!", *wrong).judged == Judged(right=False, accepted=True)
    assert turn("No, that is wrong.", *right).judged == Judged(right=True, accepted=False)
    assert turn("Yes", *right, stop=LEFT).judged == Judged(right=True, accepted=True)
    assert turn("Yes", "Hi", "What do you know?").judged is None
    assert turn("Hi").judged is None
    turns = (turn("Great, thanks!", *wrong), turn("No.", *wrong), turn("No.", *right))
    assert counted("wrong accepted", *turns) == Counter({0.0: 1, 1.0: 1})
    assert counted("right refused", *turns) == Counter({1.0: 1})


def test_what_the_assistant_said_cannot_be_leaked() -> None:
    assert leakable(TASK, said("Hi"))
    assert not leakable(TASK, said("Hi", "The answer is 5."))
    assert counted("leaks", turn("5", "Hi", "The answer is 5."), turn("5", stop=LEFT)) == Counter()


def test_acts_are_labelled_once() -> None:
    one = turn("What?")
    assert Act.OPEN in one.acts
    assert one.acts is one.acts


def test_every_measure_is_described() -> None:
    table = measures()
    assert len({(m.name) for m in table}) == len(table)
    for measure in table:
        assert measure.definition.endswith(".")
        assert measure.unit
        assert measure.direction
        assert (measure.count is None) != (measure.statistic is None)
