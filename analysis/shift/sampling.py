"""What another policy, or another user, would do on histories that are there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gymnasium.utils import seeding

from duologue.analysis.shift.states import answered, reached
from duologue.analysis.user_rates import Seen
from duologue.simulators._random import draw_seed
from duologue.simulators.base import Simulator
from duologue.simulators.reliable import answer_all
from duologue.trainers.agents import Agent, hash_seed
from duologue.trainers.conversation import Conversation
from duologue.types import Dialogue, UserTurn

OnStep = Callable[[int, int], None]
"""Called with steps done and steps in all."""
Place = tuple[int, int]
"""A dialogue's index and a turn."""


def replies_on(
    agent: Agent, dialogues: Sequence[Seen], turns: int, batch: int, seed: int, on_step: OnStep | None = None
) -> list[list[str | None]]:
    """Return one reply of an agent to each context of each dialogue; None where it has no room or fails.

    Args:
        agent: sampled once at each context.
        dialogues: whose contexts are answered.
        turns: only the first so many.
        batch: contexts in one call.
        seed: of the agent's sampling.
        on_step: follows the contexts.
    """
    found: list[list[str | None]] = [[None] * turns for _ in dialogues]
    for places in _batches(_places(dialogues, turns, reached), batch, on_step):
        asked = [(place, _conversation(dialogues, place, seed)) for place in places]
        asked = [(place, c) for place, c in asked if not _overflows(agent, c)]
        for ((i, turn), _), reply in zip(asked, agent.act([c for _, c in asked]) if asked else (), strict=True):
            found[i][turn] = None if reply.error else reply.text
    return found


def answers_on(
    simulator: Simulator,
    dialogues: Sequence[Seen],
    turns: int,
    batch: int,
    timeout: float | None,
    on_step: OnStep | None = None,
) -> list[list[UserTurn | None]]:
    """Return a user's answer to each turn that another user answered, with the same seed (``user_seed``).

    Args:
        simulator: the user, who is a pure function of the dialogue.
        dialogues: whose histories are answered.
        turns: only the first so many.
        batch: histories in one call.
        timeout: seconds of one call; None = no limit.
        on_step: follows the histories.

    Returns:
        Turns by dialogue and turn; None where the user failed twice, or nobody answered.
    """
    found: list[list[UserTurn | None]] = [[None] * turns for _ in dialogues]
    for places in _batches(_places(dialogues, turns, answered), batch, on_step):
        histories = [_history(dialogues[i], turn) for i, turn in places]
        for (i, turn), answer in zip(places, answer_all(simulator, histories, timeout), strict=True):
            found[i][turn] = answer if isinstance(answer, UserTurn) else None
    return found


def user_seed(seed: int) -> int:
    """Return the seed that the user of an episode had: what an environment draws first from a generator of its seed."""
    return draw_seed(seeding.np_random(seed)[0])


def missing(dialogues: Sequence[Seen], found: Sequence[Sequence[Any]], spoken: Callable[[Seen, int], bool]) -> int:
    """Return at how many places something was asked for and nothing came."""
    turns = max((len(row) for row in found), default=0)
    return sum(found[i][turn] is None for i, turn in _places(dialogues, turns, spoken))


def _places(dialogues: Sequence[Seen], turns: int, spoken: Callable[[Seen, int], bool]) -> list[Place]:
    return [(i, turn) for i, seen in enumerate(dialogues) for turn in range(turns) if spoken(seen, turn)]


def _batches(places: Sequence[Place], size: int, on_step: OnStep | None) -> Iterator[Sequence[Place]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]
        if on_step:
            on_step(min(start + size, len(places)), len(places))


def _conversation(dialogues: Sequence[Seen], place: Place, seed: int) -> Conversation:
    i, turn = place
    return Conversation(dialogues[i].messages[: 2 * turn + 1], seed=hash_seed("shift", seed, i, turn))


def _history(seen: Seen, turn: int) -> Dialogue:
    return Dialogue(seen.task, user_seed(seen.episode.seed), seen.messages[: 2 * turn + 2])


def _overflows(agent: Agent, conversation: Conversation) -> bool:
    overflow = getattr(agent, "overflow", None)
    return overflow is not None and overflow(conversation) is not None
