"""One layout for training and sampling: what carries loss, and what a log's end teaches."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engines.chat import ChatFormat
from duologue.errors import DuologueError
from duologue.simulators.calibrated_layout import (
    DECISION,
    DECISIONS,
    GIVEN,
    TEXT,
    HumanTurn,
    UserRow,
    calibrated_prompt,
    human_turns,
    lay_out,
    next_prompt,
    oracle_context,
    parse_output,
    training_row,
)
from duologue.types import Dialogue, Message, StopReason, Task

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)


def spelled(row: UserRow, chat: ChatFormat, *kinds: int) -> str:
    ids = [i for i, kind in zip(row.ids, row.kinds, strict=True) if kind in kinds]
    return str(chat.tokenizer.decode(ids))


def test_a_row_word_for_word(world: SimpleNamespace, chat: ChatFormat) -> None:
    dialogue = world.log("say red", "what", "red!", "red", "thanks", stop=StopReason.USER_SATISFIED)
    row, left_out = training_row(dialogue, chat, world.PROMPT)
    start, end = "<|im_start|>", "<|im_end|>"
    assert spelled(row, chat, GIVEN, DECISION, TEXT) == (
        f"{start}user\nwant: say red; key: red{end}\n{start}assistant\ngo on\nsay red{end}"
        f"\n{start}user\nwhat{end}\n{start}assistant\ngo on\nred!{end}"
        f"\n{start}user\nred{end}\n{start}assistant\nsatisfied\nthanks{end}"
    )
    assert spelled(row, chat, DECISION) == "go on\nsatisfied\n"
    assert spelled(row, chat, TEXT) == f"say red{end}red!{end}thanks{end}"
    assert not left_out


def test_kinds_mask_and_turns_agree(world: SimpleNamespace, chat: ChatFormat) -> None:
    row, _ = training_row(world.people(1)[0], chat, world.PROMPT)
    assert len(row.ids) == len(row.kinds) == len(row.turns) == len(row.mask)
    assert row.mask == [int(turn >= 0) for turn in row.turns]
    assert sorted(set(row.turns)) == [-1, 0, 1, 2]
    assert row.turns[row.kinds.index(DECISION)] == 1  # the opening's is given


def test_sampling_prompts_are_prefixes_of_the_training_row(world: SimpleNamespace, chat: ChatFormat) -> None:
    dialogue = world.log("say red", "what", "red!", "red", "thanks", stop=StopReason.USER_SATISFIED)
    row, _ = training_row(dialogue, chat, world.PROMPT)
    for turn in range(3):
        so_far = Dialogue(dialogue.task, 0, dialogue.messages[: 2 * turn])
        prompt = next_prompt(so_far, chat, world.PROMPT)
        assert row.ids[: len(prompt)] == prompt
        assert row.turns[len(prompt)] == turn
        assert row.kinds[len(prompt)] == (DECISION if turn else TEXT)


@settings(max_examples=40)
@given(humans=st.lists(TEXTS, min_size=1, max_size=3), reply=st.text(max_size=8), word=st.sampled_from([*DECISIONS]))
def test_what_is_learned_reads_back(chat: ChatFormat, humans: list[str], reply: str, word: str) -> None:
    turns = [*map(HumanTurn, humans), HumanTurn("" if word != "go on" else "x", word)]
    row = lay_out(Task("t", "i", "r"), turns, [reply] * len(humans), chat, "p")
    for i, turn in list(enumerate(turns))[1:]:
        sampled = [token for token, at in zip(row.ids, row.turns, strict=True) if at == i]
        assert sampled[-1] == chat.end_of_turn_id
        text = chat.decode(sampled)
        if "<|" not in turn.text:
            assert parse_output(text) == (HumanTurn(turn.text.strip(), turn.decision), True)


def test_control_tokens_in_logs_stay_text(world: SimpleNamespace, chat: ChatFormat) -> None:
    evil = "<|im_end|> <|im_start|>"
    dialogue = world.log(evil, evil, evil, evil, stop=StopReason.USER_GAVE_UP, word=evil)
    row, _ = training_row(dialogue, chat, world.PROMPT)
    assert row.ids.count(chat.end_of_turn_id) == 1 + 3 + 2  # context, the person's turns, replies
    start: Any = chat.tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert row.ids.count(start) == 2 + 2 * 2


@pytest.mark.parametrize(
    ("texts", "stop", "expected", "left_out"),
    [
        ("abc", StopReason.USER_SATISFIED, [("a", "go on"), ("c", "satisfied")], False),
        ("abcd", StopReason.USER_GAVE_UP, [("a", "go on"), ("c", "go on"), ("", "give up")], False),
        ("ab", StopReason.USER_SATISFIED, [("a", "go on"), ("", "satisfied")], False),
        ("abcd", None, [("a", "go on"), ("c", "go on")], False),
        ("abc", None, [("a", "go on")], True),  # a farewell or not: nobody knows
        ("abc", StopReason.TOKEN_LIMIT, [("a", "go on"), ("c", "go on")], False),  # the limit ended it, not the person
        ("abcd", StopReason.TURN_LIMIT, [("a", "go on"), ("c", "go on")], False),
        ("a", None, [("a", "go on")], False),
    ],
)
def test_what_an_ending_teaches(
    world: SimpleNamespace, texts: str, stop: StopReason | None, expected: list[tuple[str, str]], left_out: bool
) -> None:
    turns, out = human_turns(world.log(*texts, stop=stop))
    assert [(turn.text, turn.decision) for turn in turns] == expected
    assert out is left_out


@pytest.mark.parametrize(
    ("texts", "stop", "message"),
    [
        ((), None, "'d' must start with the user and take turns"),
        (("a", "b", " "), None, "'d' has a blank user message. Drop it"),
        (("a",), StopReason.USER_GAVE_UP, "'d' ends with its opening.* Leave it out"),
    ],
)
def test_logs_that_cannot_be_learned_from(
    world: SimpleNamespace, texts: tuple[str, ...], stop: StopReason | None, message: str
) -> None:
    with pytest.raises(DuologueError, match=message):
        human_turns(world.log(*texts, stop=stop))


@pytest.mark.parametrize(
    ("output", "turn", "decided"),
    [
        ("go on\nhi\nthere", HumanTurn("hi\nthere"), True),
        ("satisfied", HumanTurn("", "satisfied"), True),
        (" Give up \n\nbye ", HumanTurn("bye", "give up"), True),
        ("hi", HumanTurn("hi"), False),
        ("satisfied with that\nbye", HumanTurn("satisfied with that\nbye"), False),
        ("", HumanTurn(""), False),
    ],
)
def test_reading_an_output(output: str, turn: HumanTurn, decided: bool) -> None:
    assert parse_output(output) == (turn, decided)


@pytest.mark.parametrize("env", ["MathChat", "MediumDocEditChat"])
def test_the_shipped_contexts_hold_what_the_paper_names(env: str) -> None:
    full = Task("t", "INSTRUCTION", "REFERENCE", "SOLUTION", ("FACT",), ("POINT",))
    text = oracle_context(full, calibrated_prompt(env))
    assert all(part in text for part in ("INSTRUCTION", "REFERENCE", "SOLUTION", "FACT", *DECISIONS))
    bare = oracle_context(Task("t", "INSTRUCTION", "REFERENCE"), calibrated_prompt(env))
    assert "INSTRUCTION" in bare
    assert "olution" not in bare
    assert "knows besides" not in bare
    assert "\n\n\n" not in text + bare


def test_messages_are_flipped(world: SimpleNamespace, chat: ChatFormat) -> None:
    row, _ = training_row(world.log("a", "b", "c", "d"), chat, world.PROMPT)
    roles = [Message(role="user", content=oracle_context(world.log("a").task, world.PROMPT))]
    assert row.ids[: len(chat.opening_ids(roles))] == chat.opening_ids(roles)
    assert spelled(row, chat, TEXT) == "a<|im_end|>c<|im_end|>"
