import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from duologue.envs.tasks.files import load_sharded_gsm8k
from duologue.envs.tasks.math import MathTasks
from duologue.errors import DuologueError
from duologue.simulators._text import numbers
from duologue.simulators.leaks import leaks
from duologue.simulators.personas import MIXES, Mix, draw_persona
from duologue.simulators.scripted_math import ScriptedMathUser
from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

CALM = replace(
    MIXES["default"],
    name="calm",
    patience=(20, 20),
    miss_error=(0, 0),
    doubt_right=(0, 0),
    confusion=(0, 0),
    volunteers=(0, 0),
)


def answer(task: Task, reply: str, seed: int = 0, mix: Mix | str = CALM) -> UserTurn:
    """The user's turn after their opening and this reply."""
    user = ScriptedMathUser(mix)
    opened = Dialogue(task, seed).then("user", user.respond([Dialogue(task, seed)])[0].text)
    return user.respond([opened.then("assistant", reply)])[0]


def play(user: ScriptedMathUser, task: Task, seed: int, agent: Callable[[Dialogue], str]) -> list[UserTurn]:
    dialogue = Dialogue(task, seed)
    turns: list[UserTurn] = []
    while not turns or turns[-1].stop is None:
        turns.append(user.respond([dialogue])[0])
        dialogue = dialogue.then("user", turns[-1].text)
        dialogue = dialogue.then("assistant", agent(dialogue))
    return turns


def test_opening_is_the_instruction(math_task: Task) -> None:
    turn = ScriptedMathUser(CALM).respond([Dialogue(math_task, 1)])[0]
    assert turn.acts == (Act.OPEN,)
    assert turn.stop is None
    assert not any(character.isdigit() for character in turn.text)


def test_the_asked_fact_comes_alone(math_task: Task) -> None:
    turn = answer(math_task, "How many pears does Mia give to Tom?")
    assert "4 pears" in turn.text
    assert "12" not in turn.text
    assert "9" not in turn.text
    assert (turn.acts, turn.notes) == ((Act.REVEAL,), {"reveal": 1.0})


def test_facts_come_one_at_a_time_until_none_is_left(math_task: Task) -> None:
    for seed in range(30):
        turns = play(ScriptedMathUser(CALM), math_task, seed, lambda _: "What else do you know?")
        told = [[fact for fact in math_task.facts if fact[4:].lower() in t.text.lower() + "."] for t in turns]
        assert [len(facts) for facts in told[:4]] == [0, 1, 1, 1]
        assert sorted(fact for facts in told[1:4] for fact in facts) == sorted(math_task.facts)
        assert turns[4].notes == {"nothing_left": 1.0}


def test_nothing_is_told_unasked(math_task: Task) -> None:
    turn = answer(math_task, "Let me think about apples.")
    assert turn.acts == (Act.CONFUSED,)
    assert not any(character.isdigit() for character in turn.text)


def test_right_answer_is_accepted(math_task: Task) -> None:
    turn = answer(math_task, "The answer is 17.")
    assert turn.stop is StopReason.USER_SATISFIED
    assert turn.acts[0] is Act.ACCEPT
    assert turn.acts[-1] is Act.STOP


def test_wrong_answer_is_rejected_without_the_gold(math_task: Task) -> None:
    turn = answer(math_task, "The answer is 18. Does that help?")
    assert turn.stop is None
    assert turn.acts == (Act.REJECT,)
    assert "17" not in turn.text


@pytest.mark.parametrize("mix", ["default", "held-out"])
def test_miss_rate_is_the_personas(math_task: Task, mix: str) -> None:
    missed, expected, variance = 0, 0.0, 0.0
    for seed in range(300):
        rate = draw_persona(mix, seed).miss_error
        missed += answer(math_task, "The answer is 18.", seed, mix).stop is StopReason.USER_SATISFIED
        expected, variance = expected + rate, variance + rate * (1 - rate)
    assert abs(missed - expected) < 3.5 * math.sqrt(variance)


def test_doubt_rate_is_the_mixs(math_task: Task) -> None:
    doubting = replace(CALM, doubt_right=(0.5, 0.5))
    turns = [answer(math_task, "The answer is 17.", seed, doubting) for seed in range(300)]
    doubted = sum(turn.stop is None for turn in turns)
    assert abs(doubted - 150) < 3.5 * math.sqrt(75)
    assert all(turn.notes == {"doubt": 1.0} for turn in turns if turn.stop is None)


def test_volunteers_add_one_fact_to_a_rejection(math_task: Task) -> None:
    turn = answer(math_task, "The answer is 18.", mix=replace(CALM, volunteers=(1, 1)))
    assert turn.acts == (Act.REJECT, Act.REVEAL)
    assert "12 apples" in turn.text
    assert turn.notes["volunteer"] == 1.0


def test_patience_runs_out(math_task: Task) -> None:
    for patience in (2, 5):
        user = ScriptedMathUser(replace(CALM, patience=(patience, patience)))
        turns = play(user, math_task, 0, lambda _: "Hm.")
        assert len(turns) == patience + 1
        assert turns[-1].stop is StopReason.USER_GAVE_UP


def test_a_right_answer_at_the_last_moment_counts(math_task: Task) -> None:
    user = ScriptedMathUser(replace(CALM, patience=(1, 1)))
    assert play(user, math_task, 0, lambda _: "Answer: 17")[-1].stop is StopReason.USER_SATISFIED


def test_a_checker_that_fails_is_noted_and_not_accepted(math_task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.simulators.scripted_math.answers_equal", lambda given, gold: None)
    turn = answer(math_task, "The answer is 17.")
    assert turn.stop is None
    assert turn.notes == {"reject": 1.0, "check_failed": 1.0}


def test_a_batch_is_its_rows(math_task: Task) -> None:
    user = ScriptedMathUser()
    dialogues = [Dialogue(math_task, seed).then("user", "hi").then("assistant", "And?") for seed in range(20)]
    assert user.respond(dialogues) == [user.respond([d])[0] for d in dialogues]


def test_a_persons_history_can_be_continued(math_task: Task) -> None:
    d = Dialogue(math_task, 0).then("user", "hey can u help w mia's apples")
    d = d.then("assistant", "How many apples does Mia start with?").then("user", "12").then("assistant", "What else?")
    text = ScriptedMathUser(CALM).respond([d])[0].text.lower()
    assert "9 more apples" in text


def test_answering_oneself_is_refused(math_task: Task) -> None:
    with pytest.raises(DuologueError, match="Append the assistant's reply"):
        ScriptedMathUser().respond([Dialogue(math_task, 0).then("user", "hi")])


@pytest.mark.parametrize("mix", ["default", "held-out"])
def test_the_answer_never_leaks_and_turns_are_short(mix: str) -> None:
    user, lengths = ScriptedMathUser(mix), []
    for level in range(1, 6):
        for i in range(40):
            task, dialogue = MathTasks(level).at(i), Dialogue(MathTasks(level).at(i), i)
            for reply in (
                "What do you know?",
                "Ok.",
                "The answer is -99991.",
                "Tell me more.",
                "And what else?",
                "So?",
            ):
                turn = user.respond([dialogue])[0]
                assert not leaks(task, dialogue.messages, turn.text)
                if turn.stop:
                    break
                lengths.append(len(turn.text.split()))
                dialogue = dialogue.then("user", turn.text).then("assistant", reply)
    assert 5 <= statistics.median(lengths) <= 9


def test_sharded_problems_can_be_solved_by_asking(shared_data: Path) -> None:
    tasks = list(load_sharded_gsm8k(shared_data / "sharded_gsm8k" / "sharded_gsm8k_v2.json"))[:100]

    def ask_then_answer(d: Dialogue) -> str:
        return "What else?" if len(d.said_by("user")) <= len(d.task.facts) else f"The answer is {d.task.reference}."

    for i, task in enumerate(tasks):
        turns = play(ScriptedMathUser(CALM), task, i, ask_then_answer)
        assert turns[-1].stop is StopReason.USER_SATISFIED
        said = " ".join(turn.text for turn in turns)
        assert numbers(" ".join(task.facts)) <= numbers(said)
        assert all(turn.notes.get("reveal", 0) <= 1 for turn in turns)
