"""What a reply is worth: the mean of what follows it, over what could be scored."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from duologue.engines.base import Completion, Sampling
from duologue.engines.chat import ChatFormat
from duologue.envs import DialogueVectorEnv, LoggedContexts
from duologue.simulators.logs import LoggedDialogue
from duologue.trainers.agents import Limits, TokenAgent, hash_seed
from duologue.trainers.conversation import Conversation, Reply
from duologue.trainers.dpo_config import DpoConfig
from duologue.trainers.forward_sampling import ForwardAgent, drawn_histories, sample_forward
from duologue.trainers.preference_pairs import ValuedContext, ValuedReply, count_pairs
from duologue.types import Dialogue, Message, StopReason, Task, UserTurn

CONFIG = DpoConfig(dialogues="logs.jsonl", replies=6, continuations=4)


def history(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(texts))


class Asker:
    """Says "what" or "no" by its seed, unless the user has told the word: then it says that."""

    context_length = 128

    def __init__(self, chat: ChatFormat) -> None:
        self.chat = chat
        self.prompts: list[str] = []

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        return [self.say(str(self.chat.tokenizer.decode(list(p))), s) for p, s in zip(prompts, seeds, strict=True)]

    def say(self, prompt: str, seed: int) -> Completion:
        self.prompts.append(prompt)
        told = prompt.rpartition("it is ")[2].split()[0] if "it is" in prompt else ("what", "no")[seed % 2]
        ids = (*self.chat.text_ids(told), self.chat.end_of_turn_id)
        return Completion(ids, (0.0,) * len(ids), "stop")


class Teller:
    """Tells the word to who asks "what", and leaves who says "no". ``breaks`` fails for these seeds."""

    signature = "teller"

    def __init__(self, breaks: Callable[[Dialogue], bool] = lambda dialogue: False) -> None:
        self.breaks, self.asked = breaks, list[Dialogue]()

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.asked += dialogues
        return [self.answer(dialogue) for dialogue in dialogues]

    def answer(self, dialogue: Dialogue) -> UserTurn:
        if self.breaks(dialogue):
            raise RuntimeError("broken")
        if dialogue.messages[-1]["content"] == "what":
            return UserTurn(f"it is {dialogue.task.reference}")
        return UserTurn("", stop=StopReason.USER_GAVE_UP)


@pytest.fixture
def contexts() -> LoggedContexts:
    tasks = [Task(word, f"please say {word}", reference=word) for word in ("red", "blue")]
    logs = [LoggedDialogue(t.task_id, t, history("hello", "hi", "please say", "no")) for t in tasks]
    return LoggedContexts(logs)


@pytest.fixture
def sampled(chat: ChatFormat, contexts: LoggedContexts, world: SimpleNamespace) -> Callable[..., list[ValuedContext]]:
    """Values replies in the world above."""

    def sample(user: Any = None, max_turns: int = 3, reward: Any = world.heard, slots: int = 5) -> list[ValuedContext]:
        env = DialogueVectorEnv(slots, None, user or Teller(), reward, max_turns, contexts=contexts)
        found: list[ValuedContext] = []
        policy = TokenAgent(Asker(chat), chat, Limits(8, 120))
        sample_forward(env, policy, drawn_histories(contexts, None, 0), CONFIG, found.append)
        return sorted(found, key=lambda c: c.context_id)

    return sample


def test_the_better_reply_is_the_one_whose_dialogues_earn_more(sampled: Callable[..., list[ValuedContext]]) -> None:
    """Neither reply earns anything itself; "what" makes the user tell, and the next turn then succeeds."""
    found = sampled()
    assert [c.context_id for c in found] == ["blue#1", "blue#2", "red#1", "red#2"]
    for context in found:
        pair = context.pair()
        assert pair is not None
        assert (pair.chosen.text, pair.chosen.value) == ("what", 1.0)
        assert (pair.rejected.text, pair.rejected.value) == ("no", 0.0)
        assert len(pair.chosen.scored) + len(pair.rejected.scored) == 24  # equal texts are one reply
    assert count_pairs(found).pairs == 4


def test_a_dialogue_ends_where_it_would_have_ended_without_a_log(sampled: Callable[..., list[ValuedContext]]) -> None:
    """With two turns in all, a question in the second comes too late, and in the first it does not."""
    by_id = {context.context_id: context for context in sampled(max_turns=2)}
    assert by_id["red#1"].pair() is not None
    assert [r.value for r in by_id["red#2"].distinct()] == [0.0, 0.0]
    assert all(context.unscored == 0 for context in by_id.values())


def test_what_failed_is_left_out_and_is_no_0(sampled: Callable[..., list[ValuedContext]]) -> None:
    found = sampled(Teller(lambda dialogue: dialogue.seed % 3 == 0))
    assert 0 < sum(context.unscored for context in found) < 4 * 24
    for context in found:
        values = {reply.text: reply.value for reply in context.distinct()}
        assert values == {"what": 1.0, "no": 0.0}
        assert sum(context.errors.values()) == context.unscored
        assert all(error.startswith("simulator_error: ") for error in context.errors)


def test_a_reply_without_a_scored_continuation_is_left_out(sampled: Callable[..., list[ValuedContext]]) -> None:
    found = sampled(Teller(lambda dialogue: dialogue.messages[-1]["content"] == "no"))
    assert {reply.text for context in found for reply in context.distinct()} == {"what"}
    assert not any(context.pair() for context in found)
    counts = count_pairs(found)
    assert (counts.pairs, counts.ties, counts.too_few) == (0, 0, 4)
    assert counts.unscored > 0


def test_all_replies_to_a_history_meet_the_same_users(sampled: Callable[..., list[ValuedContext]]) -> None:
    user = Teller()
    sampled(user)
    first = [d for d in user.asked if len(d.messages) == 2 and d.task.task_id == "red"]
    by_reply = [{d.seed for d in first if d.messages[-1]["content"] == text} for text in ("what", "no")]
    assert by_reply[0] == by_reply[1]
    assert len(by_reply[0]) == CONFIG.continuations


@pytest.mark.parametrize("slots", [1, 96])
def test_values_do_not_depend_on_how_many_play_side_by_side(
    sampled: Callable[..., list[ValuedContext]], slots: int
) -> None:
    assert sampled(slots=slots) == sampled()


def test_a_reply_is_sampled_once_and_its_tokens_are_counted_once(sampled: Callable[..., list[ValuedContext]]) -> None:
    found = sampled()
    for context in found:
        asked = sum(reply.text == "what" for reply in context.replies)
        assert all(len(reply.token_ids) == 2 for reply in context.replies)
        assert context.sampled_tokens == 2 * CONFIG.replies + 2 * CONFIG.continuations * asked


def test_the_first_reply_is_shared_and_later_turns_are_not(make_agent: Callable[..., TokenAgent]) -> None:
    agent = ForwardAgent(make_agent(), {1: 7, 2: 7, 3: 8}, max_turns=3)
    opened = [Conversation(history("hello please say red"), seed=seed) for seed in (1, 2, 3)]
    first, second, other = agent.act(opened)
    assert first is second
    assert first.token_ids != other.token_ids
    [alone] = make_agent().act([Conversation(history("hello please say red"), seed=7)])
    assert alone.token_ids == first.token_ids
    later = agent.act([c.replied(first).answered("no") for c in opened[:2]])
    assert later[0].token_ids != later[1].token_ids
    assert set(agent.first_replies) == {7, 8}


def test_a_reply_is_given_even_where_the_log_has_used_all_turns(make_agent: Callable[..., TokenAgent]) -> None:
    agent = ForwardAgent(make_agent(), {}, max_turns=1)
    begun = Conversation(history("hello", "hi", "please say"))
    assert agent.overflow(begun) is None
    assert agent.overflow(begun.replied(Reply("no")).answered("hi")) is StopReason.TURN_LIMIT


def test_more_histories_begin_with_the_same(contexts: LoggedContexts) -> None:
    few, more = (drawn_histories(contexts, most, 3) for most in (2, 4))
    assert more[:2] == few
    assert sorted(h.place for h in more) == [0, 1, 2, 3]
    assert [h.context for h in drawn_histories(contexts, None, 3)] == list(contexts)
    starts, firsts = few[0].starts(CONFIG)
    assert len(starts) == len({s.agent_seed for s in starts}) == 24
    assert firsts[:5] == [hash_seed("dpo reply", 0, few[0].place, k) for k in (0, 0, 0, 0, 1)]


def valued(*rewards: tuple[str, tuple[float | None, ...]]) -> ValuedContext:
    replies = tuple(ValuedReply(text, (i,), row) for i, (text, row) in enumerate(rewards))
    return ValuedContext("d#1", "t", history("hello"), replies, 0)


def test_values_worked_out_by_hand() -> None:
    context = valued(("a", (1.0, None)), ("b", (0.5, 0.25)), ("a", (0.0, 0.5)), ("c", (None, None)), ("d", (0.375,)))
    assert {r.text: r.value for r in context.distinct()} == {"a": 0.5, "b": 0.375, "d": 0.375}
    pair = context.pair()
    assert pair is not None
    assert (pair.chosen.text, pair.rejected.text) == ("a", "b")  # the first of equals
    row = pair.to_json()
    assert (row["chosen_value"], row["chosen_n"], row["rejected_value"], row["rejected_n"]) == (0.5, 3, 0.375, 2)
    assert ValuedContext.from_json(context.to_json()) == context


def test_the_tokens_of_a_reply_that_failed_are_not_learned() -> None:
    failed, empty = ValuedReply("", (), (None, None)), ValuedReply("", (3,), (1.0, 0.0))
    [reply] = replace(valued(), replies=(failed, empty)).distinct()
    assert (reply.token_ids, reply.value) == ((3,), 0.5)


def test_ties_and_single_replies_are_counted_and_said() -> None:
    contexts = [valued(("a", (1.0,)), ("b", (1.0, 1.0))), valued(("a", (1.0,)), ("a", (0.0,))), valued(("a", (None,)))]
    counts = count_pairs([*contexts, valued(("a", (1.0,)), ("b", (0.0, None)))])
    assert (counts.contexts, counts.pairs, counts.ties, counts.too_few) == (4, 1, 1, 2)
    assert (counts.continuations, counts.unscored) == (9, 2)
    assert "4 histories gave 1 pairs; in 1 all replies were worth the same, in 2 fewer than two" in str(counts)
