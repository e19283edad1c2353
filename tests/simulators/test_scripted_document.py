import json
import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files

import pytest

from duologue.simulators.personas import MIXES, Mix, draw_persona
from duologue.simulators.scripted_document import ScriptedDocumentUser, coverage, missing_points, wanted_points
from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

CALM = replace(
    MIXES["default"],
    name="calm",
    patience=(20, 20),
    miss_error=(0, 0),
    confusion=(0, 0),
    good_enough=(0.8, 0.8),
    points_per_turn=(1, 1),
    typo_rate=(0, 0),
)
DRAFT = "Here is a draft:\n<document>"


def embedded() -> list[Task]:
    lines = files("duologue.envs.tasks").joinpath("data", "documents.jsonl").read_text(encoding="utf-8").splitlines()
    return [Task.from_json(json.loads(line)) for line in lines]


def answer(task: Task, reply: str, seed: int = 0, mix: Mix | str = CALM) -> UserTurn:
    user = ScriptedDocumentUser(mix)
    opened = Dialogue(task, seed).then("user", task.instruction)
    return user.respond([opened.then("assistant", reply)])[0]


def play(mix: Mix | str, task: Task, seed: int, agent: Callable[[Dialogue], str]) -> list[UserTurn]:
    dialogue = Dialogue(task, seed)
    turns: list[UserTurn] = []
    while not turns or turns[-1].stop is None:
        turns.append(ScriptedDocumentUser(mix).respond([dialogue])[0])
        dialogue = dialogue.then("user", turns[-1].text)
        dialogue = dialogue.then("assistant", agent(dialogue))
    return turns


def test_asked_about_a_fact_tells_it(document_task: Task) -> None:
    turn = answer(document_task, "How long does the ride take?")
    assert "25 minutes along the river." in turn.text
    assert Act.REVEAL in turn.acts


def test_everything_is_told_once_then_a_text_is_wanted(document_task: Task) -> None:
    turns = play(CALM, document_task, 0, lambda _: "What else should I know?")
    said = " ".join(turn.text for turn in turns).lower()
    assert [said.count(point.lower()) for point in wanted_points(document_task)] == [1] * 7
    assert turns[5].acts == (Act.ASK,)


def test_the_goal_itself_is_accepted(document_task: Task) -> None:
    turn = answer(document_task, DRAFT + document_task.reference)
    assert turn.stop is StopReason.USER_SATISFIED
    assert turn.notes["coverage"] == 1.0


def test_told_but_missing_points_are_complained_about_first(document_task: Task) -> None:
    dialogue = Dialogue(document_task, 0).then("user", document_task.instruction)
    dialogue = dialogue.then("assistant", "How long is the ride?").then("user", "It takes 25 minutes along the river.")
    draft = document_task.reference.replace("25", "40").replace("Ivo", "Bo").replace("neighbour", "cat")
    turn = ScriptedDocumentUser(replace(CALM, good_enough=(1, 1))).respond([dialogue.then("assistant", DRAFT + draft)])
    assert "25 minutes" in turn[0].text
    assert turn[0].acts == (Act.REJECT, Act.CORRECT)


def test_untold_missing_points_are_told(document_task: Task) -> None:
    turn = answer(document_task, DRAFT + "Cycling is good for you and for the planet, and it is a lot of fun too. " * 2)
    assert turn.acts == (Act.REJECT, Act.REVEAL)
    assert turn.stop is None
    assert "3,200 euros" in turn.text


@pytest.mark.parametrize(("times", "note"), [(3, "too_long"), (0, "too_short")])
def test_length_is_compared(document_task: Task, times: int, note: str) -> None:
    task = replace(document_task, facts=(), outline=())
    draft = task.reference * times if times else "Last May I sold my car for a red bicycle and rode along the river."
    turn = answer(task, DRAFT + draft)
    assert turn.notes[note] == 1.0
    assert turn.stop is None


def test_flawed_drafts_are_missed_at_the_personas_rate(document_task: Task) -> None:
    missed, expected, variance = 0, 0.0, 0.0
    for seed in range(300):
        rate = draw_persona("default", seed).miss_error
        turn = answer(document_task, DRAFT + "Bicycles are nice. They have two wheels each.", seed, "default")
        missed += turn.stop is StopReason.USER_SATISFIED
        expected, variance = expected + rate, variance + rate * (1 - rate)
    assert abs(missed - expected) < 3.5 * math.sqrt(variance)


def test_patience_runs_out(document_task: Task) -> None:
    turns = play(replace(CALM, patience=(4, 4)), document_task, 0, lambda _: "I see.")
    assert (len(turns), turns[-1].stop) == (5, StopReason.USER_GAVE_UP)


def test_a_sentence_that_is_outline_and_fact_is_wanted_once(document_task: Task) -> None:
    task = replace(document_task, outline=document_task.facts)
    assert wanted_points(task) == document_task.facts
    assert task.facts[0] in answer(task, "What about the car and the euros?").text


@pytest.mark.parametrize("task", embedded(), ids=lambda task: task.task_id)
def test_embedded_goals_satisfy_their_own_users(task: Task) -> None:
    assert coverage(task, task.reference) == 1.0
    assert coverage(task, "") == 0.0
    assert len(missing_points(task, "")) >= 5
    assert coverage(task, "A text about something else altogether.") < 0.3


def test_people_sized_turns() -> None:
    lengths = []
    for i, task in enumerate(embedded()):
        turns = play("default", task, i, lambda d: "What else?" if len(d.messages) < 6 else DRAFT + d.task.instruction)
        lengths += [len(turn.text.split()) for turn in turns if turn.stop is None]
    assert 12 <= statistics.median(lengths) <= 24
