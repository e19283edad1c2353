"""The one layout of a dialogue as tokens."""

import pytest

from duologue.engines.chat import ChatFormat
from duologue.trainers.conversation import Conversation, Reply, TokenRow, encode
from duologue.types import Message, Span

OPENING = (Message(role="user", content="please say red"),)


def reply(chat: ChatFormat, text: str, *, finished: bool = True, version: int = 0) -> Reply:
    ids = (*chat.text_ids(text), *([chat.end_of_turn_id] if finished else []))
    return Reply(text, ids, tuple(-float(i + 1) for i in range(len(ids))), version)


def spelled(chat: ChatFormat, ids: list[int]) -> str:
    return " ".join(chat.tokenizer.convert_ids_to_tokens(ids))


def test_layout_of_a_whole_dialogue(chat: ChatFormat) -> None:
    cut = reply(chat, "what is", finished=False)
    row = encode(Conversation(OPENING, (cut, reply(chat, "red", version=3)), ("no say red",)), chat)
    assert spelled(chat, row.prompt_ids) == "<|im_start|> user please say red <|im_end|> <|im_start|> assistant"
    expected = [
        ("what", 1, -1.0),
        ("is", 1, -2.0),
        ("<|im_end|>", 0, 0.0),  # the turn was cut: its end is ours, not sampled
        ("<|im_start|>", 0, 0.0),
        ("user", 0, 0.0),
        ("no", 0, 0.0),
        ("say", 0, 0.0),
        ("red", 0, 0.0),
        ("<|im_end|>", 0, 0.0),
        ("<|im_start|>", 0, 0.0),
        ("assistant", 0, 0.0),
        ("red", 1, -1.0),
        ("<|im_end|>", 1, -2.0),  # sampled, hence trained
    ]
    assert list(zip(spelled(chat, row.completion_ids).split(), row.mask, row.logprobs, strict=True)) == expected
    assert row.spans == [Span(0, 2, 0), Span(11, 13, 3)]


def test_appended_ids_are_what_the_template_renders(chat: ChatFormat) -> None:
    row = encode(Conversation(OPENING, (reply(chat, "what is"), reply(chat, "red")), ("no say red",)), chat)
    messages = [{"role": r, "content": c} for r, c in (("user", "please say red"), ("assistant", "what is"))]
    messages += [{"role": "user", "content": "no say red"}, {"role": "assistant", "content": "red"}]
    rendered = chat.tokenizer.apply_chat_template(messages, tokenize=False)
    assert row.ids == chat.tokenizer(rendered, add_special_tokens=False)["input_ids"]


def test_every_prompt_is_a_prefix_of_the_training_row(chat: ChatFormat) -> None:
    conversation, prompts = Conversation(OPENING), []
    for i, text in enumerate(("what", "why not", "red")):
        prompts.append(encode(conversation, chat).ids)
        conversation = conversation.replied(reply(chat, text, finished=i != 1))
        row = encode(conversation, chat)
        assert len(row.completion_ids) == len(row.mask) == len(row.logprobs)
        conversation = conversation.answered("no say red")
    final = encode(conversation, chat).ids
    assert all(final[: len(prompt)] == prompt for prompt in prompts)
    assert len(set(map(len, prompts))) == 3


def test_an_empty_reply_is_closed_and_not_trained(chat: ChatFormat) -> None:
    row = encode(Conversation(OPENING, (Reply(""),)), chat)
    assert (row.completion_ids, row.mask) == ([chat.end_of_turn_id], [0])
    assert row.spans == [Span(0, 0, 0)]


def test_a_system_prompt_is_part_of_the_prompt_alone(chat: ChatFormat) -> None:
    with_system = ChatFormat(chat.tokenizer, "you say yes")
    conversation = Conversation(OPENING, (reply(chat, "what"), reply(chat, "red")), ("no",))
    plain, row = encode(conversation, chat), encode(conversation, with_system)
    assert row.completion_ids == plain.completion_ids
    assert spelled(chat, row.prompt_ids[:6]) == "<|im_start|> system you say yes <|im_end|>"
    assert row.prompt_ids[6:] == plain.prompt_ids


def test_tokens_without_their_logprobs_are_refused() -> None:
    with pytest.raises(ValueError, match="2 tokens but 1 log-prob"):
        TokenRow([1]).add_sampled(Reply("red", (5, 6), (-1.0,)))


def test_messages_are_fresh_copies(chat: ChatFormat) -> None:
    conversation = Conversation(OPENING, (reply(chat, "what"),), ("no",))
    conversation.messages[0]["content"] = "changed"
    assert [m["content"] for m in conversation.messages] == ["please say red", "what", "no"]
    assert [m["role"] for m in conversation.messages] == ["user", "assistant", "user"]
