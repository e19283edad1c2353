"""Who plays the assistant."""

from collections.abc import Callable, Sequence

import pytest

from duologue.analysis.play import starts_of
from duologue.engines.base import Sampling
from duologue.trainers.agents import ChatAgent, FunctionAgent, TokenAgent, hash_seed
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.conversation import Conversation, Reply
from duologue.trainers.interactive import seed_rows
from duologue.types import Message, StopReason

MakeAgent = Callable[..., TokenAgent]


def opened(text: str = "please say red", seed: int = 0) -> Conversation:
    return Conversation((Message(role="user", content=text),), seed=seed)


def test_seeds_fix_the_reply_whatever_the_batch(make_agent: MakeAgent) -> None:
    agent = make_agent()
    asked = [opened(seed=seed) for seed in range(12)] + [opened("now", seed=99)]
    together = agent.act(asked)
    alone = [agent.act([conversation])[0] for conversation in reversed(asked)][::-1]
    assert [r.token_ids for r in together] == [r.token_ids for r in alone]
    assert len({r.token_ids for r in together}) > 6


def test_each_turn_has_its_own_stream(make_agent: MakeAgent) -> None:
    agent = make_agent()
    first = agent.act([opened(seed=3)])[0]
    second = agent.act([opened(seed=3).replied(first).answered("please say red")])[0]
    assert first.token_ids != second.token_ids


def test_text_is_what_the_sampled_tokens_say(make_agent: MakeAgent) -> None:
    agent = make_agent()
    for reply in agent.act([opened(seed=seed) for seed in range(8)]):
        assert reply.text == agent.chat.decode(reply.token_ids)
        assert "<|im" not in reply.text
        assert len(reply.token_ids) == len(reply.logprobs) <= 6
        assert all(score < 0 for score in reply.logprobs)
        assert agent.chat.end_of_turn_id not in reply.token_ids[:-1]


def test_overflow_leaves_room_for_a_full_turn(make_agent: MakeAgent) -> None:
    prompt = len(make_agent().layout(opened()).ids)
    assert make_agent(per_turn=6, total=prompt + 6).overflow(opened()) is None
    assert make_agent(per_turn=6, total=prompt + 5).overflow(opened()) is StopReason.TOKEN_LIMIT
    context = make_agent().engine.context_length
    assert make_agent(per_turn=context - prompt, total=999).overflow(opened()) is None
    assert make_agent(per_turn=context, total=999).overflow(opened()) is StopReason.CONTEXT_OVERFLOW


def test_signature_names_the_sampling(make_agent: MakeAgent) -> None:
    assert make_agent(6, 100).signature == "model|t:1|turn:6|total:100"


class Parrot:
    signature = "parrot"

    def __init__(self) -> None:
        self.heard: list[list[Message]] = []

    def chat(self, conversations: Sequence[Sequence[Message]], sampling: Sampling, seeds: Sequence[int]) -> list[str]:
        self.heard = [list(c) for c in conversations]
        return [f"{c[-1]['content']} {seed % 7}" for c, seed in zip(conversations, seeds, strict=True)]


def test_chat_agent_asks_once_and_seeds_each_conversation() -> None:
    model = Parrot()
    agent = ChatAgent(model, Sampling(17, 0.5), "you say yes")
    replies = agent.act([opened("red", seed=1), opened("blue", seed=2)])
    assert [r.text for r in replies] == [f"red {hash_seed('turn', 1, 0) % 7}", f"blue {hash_seed('turn', 2, 0) % 7}"]
    assert [c[0]["role"] for c in model.heard] == ["system", "system"]
    assert agent.signature == "parrot|t:0.5|turn:17"


def test_a_function_that_breaks_is_data() -> None:
    def moody(messages: list[Message]) -> object:
        if messages[-1]["content"] == "red":
            raise KeyError("red")
        return 7 if messages[-1]["content"] == "blue" else "ok"

    broken, junk, fine = FunctionAgent(moody, "moody").act([opened("red"), opened("blue"), opened("hi")])
    assert broken.error is not None
    assert "moody raised KeyError('red'). Fix it" in broken.error
    assert junk.error == "The agent moody returned int. Return a str."
    assert fine == Reply("ok")


@pytest.mark.parametrize(("parts", "seed"), [((0,), 5028697771883902315), ((1, 2, 3), 5797874941622331431)])
def test_hash_seed_is_stable(parts: tuple[int, ...], seed: int) -> None:
    assert hash_seed("turn", *parts) == seed
    assert 0 <= hash_seed("turn", *parts) < 2**63


def test_hash_seed_tells_streams_parts_and_their_number_apart() -> None:
    parts = [(a, b, c) for a in range(8) for b in range(8) for c in range(8)]
    seeds = {hash_seed(stream, *p) for stream in ("env", "agent") for p in [*parts, (0,), (0, 0)]}
    assert len(seeds) == 2 * (len(parts) + 2)


def test_training_and_evaluation_share_no_seed() -> None:
    trained = set(seed_rows(InteractiveConfig(steps=50, groups_per_step=4))["seed"])
    evaluated = {start.seed for start in starts_of(InteractiveConfig().seed, 200)}
    assert len(trained) == len(evaluated) == 200
    assert not trained & evaluated


def test_an_edited_function_is_another_agent() -> None:
    def yes(messages: list[Message]) -> str:
        return "yes"

    first = FunctionAgent(yes).signature

    def yes(messages: list[Message]) -> str:  # type: ignore[no-redef]
        return "yes!"

    second = FunctionAgent(yes).signature
    assert first.partition("@")[0] == second.partition("@")[0]
    assert first != second
    assert FunctionAgent(len).signature == "len"
