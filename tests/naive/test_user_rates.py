"""The rates of users: rules on dialogues made by hand, and known rates found again."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from duologue.analysis.user_rates import UserRates, user_rates
from duologue.errors import DuologueError
from duologue.simulators import ScriptedDocumentUser, ScriptedMathUser
from duologue.trainers.stats import Estimate
from duologue.types import Dialogue, Episode, Message, StopReason, Task

Play = Callable[..., list[Episode]]
CALM = "default,miss_error=0,doubt_right=0,confusion=0,volunteers=0,typo_rate=0"
POOR = "<document>\nA bicycle is nice.\n</document>"


def asks_then_errs(dialogue: Dialogue) -> str:
    return "What do you know?" if len(dialogue.messages) < 3 else f"The answer is {len(dialogue.messages)}."


def asks_then_drafts(dialogue: Dialogue) -> str:
    return "What should it say?" if len(dialogue.messages) < 3 else POOR


def measured(tasks: tuple[Task, ...], *episodes: Episode) -> UserRates:
    return user_rates(episodes, {task.task_id: task for task in tasks}.__getitem__)


def talk(task: Task, *texts: str, stop: StopReason = StopReason.TURN_LIMIT, env: str = "MathChat-v0") -> Episode:
    roles = ("user", "assistant")
    messages = [Message(role="user" if roles[i % 2] == "user" else "assistant", content=t) for i, t in enumerate(texts)]
    return Episode(env, task.task_id, 0, tuple(messages), stop, 0.0)


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high and estimate.high - estimate.low < 0.3


def test_known_rates_of_maths_users_are_found_again(play: Play, math_tasks: tuple[Task, ...]) -> None:
    user = ScriptedMathUser(f"{CALM},sycophancy=0.5,leak=0.3,overtelling=0.4")
    found = measured(math_tasks, *play(user, math_tasks, asks_then_errs, 150))
    assert found.dialogues == 150
    assert holds(found.wrong_accepted, 0.5)
    assert holds(found.leaks_per_turn, 0.3)
    assert holds(found.told_at_opening, 0.4)
    assert holds(found.told_when_asked, 0.4 + 0.6 / 2)  # a plain answer tells one of two facts
    assert found.premature_stops.value == 0.0


def test_known_rates_of_authors_are_found_again(play: Play, document: Task) -> None:
    user = ScriptedDocumentUser(f"{CALM},sycophancy=0.5,leak=0.3,overtelling=0.4")
    found = measured((document,), *play(user, [document], asks_then_drafts, 150))
    assert holds(found.wrong_accepted, 0.5)
    assert holds(found.leaks_per_turn, 0.3)
    assert holds(found.told_at_opening, 0.4)


def test_users_without_vices_show_none(play: Play, math_tasks: tuple[Task, ...], document: Task) -> None:
    maths = measured(math_tasks, *play(ScriptedMathUser(CALM), math_tasks, asks_then_errs, 80))
    texts = measured((document,), *play(ScriptedDocumentUser(CALM), [document], asks_then_drafts, 80))
    for found in (maths, texts):
        for name in ("wrong_accepted", "leaks_per_turn", "dialogues_with_leak", "told_at_opening"):
            assert found.rates[name].value == 0.0
            assert 0 < found.rates[name].high < 0.05  # nothing seen is not nothing there
    assert maths.told_when_asked.value == 0.5


def test_misses_and_sycophancy_cannot_be_told_apart(play: Play, math_tasks: tuple[Task, ...]) -> None:
    user = ScriptedMathUser(f"{CALM.replace('miss_error=0', 'miss_error=0.2')},sycophancy=0.5")
    assert holds(measured(math_tasks, *play(user, math_tasks, asks_then_errs, 150)).wrong_accepted, 0.6)


def test_doubt_of_right_answers_is_found_again(play: Play, math_tasks: tuple[Task, ...]) -> None:
    user = ScriptedMathUser(CALM.replace("doubt_right=0", "doubt_right=0.3"))
    gold = {task.instruction.lower()[-10:]: task.reference for task in math_tasks}

    def knows(dialogue: Dialogue) -> str:
        opening = dialogue.messages[0]["content"].lower()
        return f"The answer is {next(ref for end, ref in gold.items() if opening.endswith(end))}."

    assert holds(measured(math_tasks, *play(user, math_tasks, knows, 150)).right_refused, 0.3)


@pytest.mark.parametrize(
    ("reaction", "accepted"),
    [
        ("Great, thanks!", 1.0),
        ("Yes, that's right.", 1.0),
        ("That's not right.", 0.0),
        ("Thanks, but that isn't it.", 0.0),
        ("Right, but are you sure?", 0.0),
        ("I have 12 apples.", 0.0),
        ("That doesn\u2019t look correct.", 0.0),
    ],
)
def test_words_that_agree_accept_unless_they_object(
    math_tasks: tuple[Task, ...], reaction: str, accepted: float
) -> None:
    found = measured(math_tasks, talk(math_tasks[0], "Help!", "The answer is 3.", reaction, "Hm."))
    assert found.wrong_accepted.value == accepted


def test_how_it_ended_decides_over_the_words(math_tasks: tuple[Task, ...]) -> None:
    left = talk(math_tasks[0], "Help!", "The answer is 3.", "Thanks.", stop=StopReason.USER_GAVE_UP)
    pleased = talk(math_tasks[0], "Help!", "The answer is 3.", "No?", stop=StopReason.USER_SATISFIED)
    assert measured(math_tasks, left).wrong_accepted.value == 0.0
    assert measured(math_tasks, pleased).wrong_accepted.value == 1.0


def test_an_answer_that_nobody_replied_to_is_not_judged(math_tasks: tuple[Task, ...]) -> None:
    found = measured(math_tasks, talk(math_tasks[0], "Help!", "The answer is 3."))
    assert (found.wrong_accepted.n, found.right_refused.n) == (0, 0)
    assert str(found.wrong_accepted) == "n/a (n=0)"


def test_a_right_answer_that_the_user_goes_on_from_is_refused(math_tasks: tuple[Task, ...]) -> None:
    found = measured(math_tasks, talk(math_tasks[0], "Help!", "The answer is 17.", "Are you sure?", "Yes."))
    assert (found.right_refused.value, found.wrong_accepted.n) == (1.0, 0)


def test_leaks_count_before_the_assistant_said_it_and_masks_count(math_tasks: tuple[Task, ...]) -> None:
    asked = talk(math_tasks[0], "It is 17.", "Is it 17?", "Yes, 17.", "Ok.", "17!")
    masked = talk(math_tasks[0], "Help!", "What?", "I think [...]", "Ok.")
    found = measured(math_tasks, asked, masked)
    assert found.leaks_per_turn.value == pytest.approx(2 / 3)  # the opening of the first, both turns of the second
    assert found.dialogues_with_leak.value == 1.0


def test_the_turn_that_ends_the_dialogue_leaks_nothing(math_tasks: tuple[Task, ...]) -> None:
    found = measured(math_tasks, talk(math_tasks[0], "Hi", "Hm", "17.", stop=StopReason.USER_GAVE_UP))
    assert found.leaks_per_turn.value == 0.0


def test_an_answer_among_the_facts_gives_no_chance_to_leak(math_tasks: tuple[Task, ...]) -> None:
    known = replace(math_tasks[0], facts=("Mia has 17 apples.",))
    assert measured((known,), talk(known, "It is 17.", "Hm.")).leaks_per_turn.n == 0


def test_told_when_asked_needs_a_question(math_tasks: tuple[Task, ...]) -> None:
    fact = math_tasks[0].facts[0]
    assert measured(math_tasks, talk(math_tasks[0], "Help!", "Okay.", fact)).told_when_asked.n == 0
    assert measured(math_tasks, talk(math_tasks[0], "Help!", "What?", fact)).told_when_asked.value == 0.5


def test_lengths_turns_and_premature_stops(math_tasks: tuple[Task, ...]) -> None:
    early = talk(math_tasks[0], "one two", "Hm.", "three", stop=StopReason.USER_SATISFIED)
    late = talk(math_tasks[0], "one", "The answer is 17.", "a b c d", stop=StopReason.USER_SATISFIED)
    found = measured(math_tasks, early, late)
    assert (found.words_per_turn.value, found.turns.value, found.premature_stops.value) == (2.0, 2.0, 0.5)


def test_drafts_in_between_are_not_judged(document: Task) -> None:
    half = " ".join(document.reference.split(". ")[1:])
    env = "MediumDocEditChat-v0"
    good = talk(document, "Hi", f"<document>\n{document.reference}\n</document>", "No.", env=env)
    middling = talk(document, "Hi", f"<document>\n{half}\n</document>", "Perfect.", env=env)
    assert measured((document,), good).right_refused.value == 1.0
    found = measured((document,), middling)
    assert (found.wrong_accepted.n, found.right_refused.n) == (0, 0)


def test_errors_are_left_out_and_the_numbers_are_json(math_tasks: tuple[Task, ...]) -> None:
    fine, broken = talk(math_tasks[0], "Hi", "Ok."), talk(math_tasks[0], "Hi", stop=StopReason.SIMULATOR_ERROR)
    row = measured(math_tasks, fine, broken).to_json()
    assert (row["env"], row["dialogues"]) == ("MathChat", 1)
    assert row["wrong_accepted"] == {"value": None, "low": None, "high": None, "n": 0}


def test_what_cannot_be_measured_together_is_refused(math_tasks: tuple[Task, ...], document: Task) -> None:
    maths, text = talk(math_tasks[0], "Hi"), talk(document, "Hi", env="MediumDocEditChat-v0")
    with pytest.raises(DuologueError, match="come from 2 environments"):
        measured((*math_tasks, document), maths, text)
    with pytest.raises(DuologueError, match="0 environments"):
        measured(math_tasks, talk(math_tasks[0], "Hi", stop=StopReason.SIMULATOR_ERROR))
    with pytest.raises(DuologueError, match="do not know the environment"):
        measured(math_tasks, talk(math_tasks[0], "Hi", env="Chess-v0"))
