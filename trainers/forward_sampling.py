"""Forward sampling: what a reply is worth is what the dialogues earn that go on from it (arXiv:2502.00640).

Each reply to a logged history is played on to the end of the dialogue, several times, with a user. The m-th
continuations of all replies to one history have the same user seed, so that no reply is worth more for an easier user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from duologue.envs.contexts import Context, LoggedContexts
from duologue.trainers.agents import TokenAgent, hash_seed
from duologue.trainers.conversation import Conversation, Reply
from duologue.trainers.preference_pairs import ValuedContext, ValuedReply
from duologue.trainers.rollout import Rollout, Start
from duologue.types import Episode, StopReason

OnContext = Callable[[ValuedContext], None]
_NO_REPLY = Reply("", error="There was no reply.")


class ForwardFields(Protocol):
    """The fields of a configuration that forward sampling reads."""

    @property
    def replies(self) -> int:
        """Replies to each history."""
        ...

    @property
    def continuations(self) -> int:
        """Continuations of each reply."""
        ...

    @property
    def seed(self) -> int:
        """Seeds users and sampling."""
        ...


class ForwardAgent(TokenAgent):
    """A policy whose first reply is the same in all continuations of it; later turns are sampled anew in each.

    Args:
        policy: who samples.
        reply_seeds: from a conversation's seed to that of its first reply.
        max_turns: most assistant turns of a dialogue, those of its history included; one reply is always given.
    """

    def __init__(self, policy: TokenAgent, reply_seeds: Mapping[int, int], max_turns: int) -> None:
        super().__init__(
            policy.engine, policy.chat, policy.limits, temperature=policy.temperature, name=policy.signature
        )
        self.reply_seeds, self.max_turns = reply_seeds, max_turns
        self.first_replies: dict[int, Reply] = {}
        """First replies by their seeds."""

    def act(self, conversations: Sequence[Conversation]) -> list[Reply]:
        """Sample what was not sampled yet, in one call."""
        begun = [c for c in conversations if not c.replies]
        fresh = {seed: c for c in begun if (seed := self.reply_seeds[c.seed]) not in self.first_replies}
        going_on = [c for c in conversations if c.replies]
        asked = [*(replace(c, seed=seed) for seed, c in fresh.items()), *going_on]
        said = super().act(asked) if asked else []
        self.first_replies.update(zip(fresh, said, strict=False))
        later = iter(said[len(fresh) :])
        return [next(later) if c.replies else self.first_replies[self.reply_seeds[c.seed]] for c in conversations]

    def overflow(self, conversation: Conversation) -> StopReason | None:
        """Return why the conversation has no room for another turn, or None if it has."""
        turns = sum(m["role"] == "assistant" for m in conversation.messages)
        if conversation.replies and turns >= self.max_turns:
            return StopReason.TURN_LIMIT
        return super().overflow(conversation)


@dataclass(frozen=True, slots=True)
class History:
    """A logged context and its place among all, from which its seeds follow."""

    place: int
    context: Context

    def starts(self, fields: ForwardFields) -> tuple[list[Start], list[int]]:
        """Return what the continuations begin with, reply by reply, and the seed of each one's first reply."""
        starts, firsts, seed = [], [], fields.seed
        for k in range(fields.replies):
            for m in range(fields.continuations):
                user = hash_seed("dpo user", seed, self.place, m)
                agent = hash_seed("dpo continuation", seed, self.place, k, m)
                starts.append(Start(user, agent, context_id=self.context.context_id))
                firsts.append(hash_seed("dpo reply", seed, self.place, k))
        return starts, firsts


def drawn_histories(contexts: LoggedContexts, most: int | None, seed: int) -> list[History]:
    """Return all contexts, or so many of them, drawn; more of them begin with the same."""
    histories = [History(place, context) for place, context in enumerate(contexts)]
    if most is None:
        return histories
    order = np.random.default_rng(hash_seed("dpo contexts", seed)).permutation(len(histories))
    return [histories[i] for i in order[:most]]


def sample_forward(
    env: gym.vector.VectorEnv[Any, Any, Any],
    policy: TokenAgent,
    histories: Sequence[History],
    fields: ForwardFields,
    on_context: OnContext,
) -> None:
    """Sample replies to histories, play each on to the end, and tell what they are worth.

    Args:
        env: with the contexts of the histories, and no more slots than there are continuations.
        policy: samples replies and the assistant's side of the continuations.
        histories: to reply to.
        fields: how many replies and continuations, and their seed.
        on_context: called with a history and its replies as soon as all of its continuations have ended.
    """
    plans = [history.starts(fields) for history in histories]
    starts = [start for begun, _ in plans for start in begun]
    firsts = [seed for _, seeds in plans for seed in seeds]
    seeds = {start.agent_seed: first for start, first in zip(starts, firsts, strict=True)}
    parts: Any = getattr(env, "parts", None)
    agent = ForwardAgent(policy, seeds, parts.dynamics.max_turns if parts else len(starts))
    each = fields.replies * fields.continuations
    played: dict[int, dict[int, Episode]] = {}

    def keep(job: int, episode: Episode) -> None:
        index, within = divmod(job, each)
        episodes = played.setdefault(index, {})
        episodes[within] = episode
        if len(episodes) == each:
            first = [agent.first_replies.get(seed, _NO_REPLY) for seed in dict.fromkeys(plans[index][1])]
            in_order = [episode for _, episode in sorted(played.pop(index).items())]
            on_context(_valued(histories[index].context, first, in_order))

    Rollout(env, agent).play(starts, keep)


def _valued(context: Context, first: Sequence[Reply], episodes: Sequence[Episode]) -> ValuedContext:
    each = len(episodes) // len(first)
    rewards = [tuple(e.reward for e in episodes[k * each : (k + 1) * each]) for k in range(len(first))]
    later = sum(span.end - span.start for e in episodes for span in e.spans[1:])
    return ValuedContext(
        context_id=context.context_id,
        task_id=context.task.task_id,
        messages=context.messages,
        replies=tuple(ValuedReply(r.text, r.token_ids, row) for r, row in zip(first, rewards, strict=True)),
        sampled_tokens=sum(len(reply.token_ids) for reply in first) + later,
        errors=dict(Counter(f"{e.stop_reason.value}: {e.error}" for e in episodes if e.reward is None)),
    )
