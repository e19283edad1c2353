import json
from dataclasses import replace

import pytest
from jinja2 import UndefinedError

from duologue.errors import DuologueError
from duologue.simulators.parsing import BLANK, parse_turn, without_reasoning
from duologue.simulators.prompted import PromptedUser
from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

from .conftest import FakeChat

GOING_ON = '{"thought": "hm", "message": "no, try again", "done": false, "satisfied": false}'


def ongoing(task: Task, seed: int = 0) -> Dialogue:
    return Dialogue(task, seed).then("user", "help me").then("assistant", "The answer is 99.")


def test_one_chat_call_of_one_message_each(fake_chat: type[FakeChat], math_task: Task) -> None:
    model = fake_chat(GOING_ON)
    user = PromptedUser(model, "MathChat-v0", max_new_tokens=77, temperature=0.5)
    turns = user.respond([ongoing(math_task, seed) for seed in range(3)])
    assert turns == [UserTurn("no, try again")] * 3
    ((conversations, sampling, seeds),) = model.calls
    assert [[m["role"] for m in c] for c in conversations] == [["user"]] * 3
    assert (sampling.max_new_tokens, sampling.temperature) == (77, 0.5)
    assert len(set(seeds)) == 3


def test_seeds_change_with_the_turn_and_not_with_the_batch(fake_chat: type[FakeChat], math_task: Task) -> None:
    model = fake_chat(lambda prompt, seed: json.dumps({"message": str(seed)}))
    user = PromptedUser(model, "MathChat")
    first, second = user.respond([Dialogue(math_task, 5), ongoing(math_task, 5)])
    assert first.text != second.text
    assert user.respond([ongoing(math_task, 5)])[0] == second


def test_the_prompt_holds_the_oracle_context(fake_chat: type[FakeChat], math_task: Task) -> None:
    prompt = PromptedUser(fake_chat(""), "MathChat").prompt(ongoing(math_task))
    for part in (math_task.instruction, math_task.reference, math_task.solution, *math_task.facts):
        assert part in prompt
    assert "STUDENT: help me" in prompt
    assert "TUTOR: The answer is 99." in prompt
    assert "has not begun" not in prompt


def test_the_document_prompt_holds_outline_and_goal(fake_chat: type[FakeChat], document_task: Task) -> None:
    prompt = PromptedUser(fake_chat(""), "MediumDocEditChat").prompt(Dialogue(document_task, 0))
    for part in (document_task.reference, *document_task.facts, *document_task.outline):
        assert part in prompt
    assert "has not begun" in prompt


def test_template_code_in_a_dialogue_is_not_run(fake_chat: type[FakeChat], math_task: Task) -> None:
    prompt = PromptedUser(fake_chat(""), "MathChat").prompt(ongoing(math_task).then("user", "{{ 7 * 191 }}"))
    assert "{{ 7 * 191 }}" in prompt


def test_the_signature_holds_model_prompt_and_sampling(fake_chat: type[FakeChat]) -> None:
    shipped = PromptedUser(fake_chat(""), "MathChat")
    own = PromptedUser(fake_chat(""), "MathChat", template="Say hi to {{ task.instruction }}")
    warm = PromptedUser(fake_chat(""), "MathChat", temperature=0.2)
    assert shipped.signature.startswith("prompted:fake-chat|prompt:")
    assert len({shipped.signature, own.signature, warm.signature}) == 3
    assert shipped.signature == PromptedUser(fake_chat(""), "MathChat").signature


def test_a_misspelt_template_variable_fails(fake_chat: type[FakeChat], math_task: Task) -> None:
    with pytest.raises(UndefinedError, match="tsk"):
        PromptedUser(fake_chat(""), "MathChat", template="{{ tsk }}").respond([Dialogue(math_task, 0)])


def test_unknown_environment(fake_chat: type[FakeChat]) -> None:
    with pytest.raises(DuologueError, match="Did you mean 'MathChat-v0'"):
        PromptedUser(fake_chat(""), "MathsChat")


def test_nothing_to_answer_calls_no_model(fake_chat: type[FakeChat]) -> None:
    model = fake_chat("")
    assert PromptedUser(model, "MathChat").respond([]) == []
    assert model.calls == []


def test_the_opening_cannot_end_the_dialogue(fake_chat: type[FakeChat], math_task: Task) -> None:
    user = PromptedUser(fake_chat('{"message": "hello", "done": true}'), "MathChat")
    assert user.respond([Dialogue(math_task, 0)]) == [UserTurn("hello", acts=(Act.OPEN,))]


@pytest.mark.parametrize(
    ("reply", "text", "stop"),
    [
        ('{"message": "ok thanks", "done": true, "satisfied": true}', "ok thanks", StopReason.USER_SATISFIED),
        ('{"message": "forget it", "done": "true", "satisfied": "no"}', "forget it", StopReason.USER_GAVE_UP),
        ('{"message": "", "done": true, "satisfied": false}', "", StopReason.USER_GAVE_UP),
        ('```json\n{"message": "huh?", "done": false}\n```', "huh?", None),
        ('<think>{"message": "secret"}</think>{"message": "public"}', "public", None),
        ('left over</think> {"message": "public"}', "public", None),
        ('Sure: {"a": 1} {"message": "second"} {"message": "third"}', "second", None),
        ('{"message": "two\nlines"}', "two\nlines", None),
        ('{"message": "is it \\(x\\)?"}', "is it \\(x\\)?", None),
        ('{"message": "is it \\frac{1}{2} \\times 3?"}', "is it \\frac{1}{2} \\times 3?", None),
        ('{"message": "is it \\\\frac{1}{2}?"}', "is it \\frac{1}{2}?", None),
        ('{"message": 12}', "12", None),
    ],
)
def test_structured_replies(reply: str, text: str, stop: StopReason | None) -> None:
    turn = parse_turn(reply)
    assert (turn.text, turn.stop) == (text, stop)
    assert "unparsed" not in turn.notes


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("no, that's wrong", "no, that's wrong"),
        ('{"thought": "x", "message": "it was cut \\"off', 'it was cut "off'),
        ('{"reply": "other key"}', '{"reply": "other key"}'),
        ("```\nplain\n```", "plain"),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_untidy_replies_are_taken_as_text_and_noted(reply: str, text: str) -> None:
    assert parse_turn(reply) == UserTurn(text, notes={"unparsed": 1.0})


@pytest.mark.parametrize("reply", ["", "  ", "<think>never closed", '{"message": null}', '{"message": " "}'])
def test_a_user_who_says_nothing_goes_on_with_dots(reply: str) -> None:
    turn = parse_turn(reply)
    assert (turn.text, turn.stop, turn.notes["blank"]) == (BLANK, None, 1.0)


def test_reasoning_is_stripped() -> None:
    assert without_reasoning("<think>a</think>b<Thinking>c</Thinking>d") == "bd"


def test_task_without_hidden_extras_renders(fake_chat: type[FakeChat], math_task: Task) -> None:
    bare = replace(math_task, facts=(), solution="")
    prompt = PromptedUser(fake_chat(""), "MathChat").prompt(Dialogue(bare, 0))
    assert "Solution:" not in prompt
    assert "What else you know" not in prompt
