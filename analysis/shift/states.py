"""What a context, a reply and a user turn come to: short labels, read off the words by the rules of ``user_rates``.

A context at turn t is the history up to the user message that the assistant's turn t answers; t counts from 0. Where
the assistant spoke no turn t, the dialogue was over before, and that is a label of its own: so the labels of every turn
sum to one, and dialogues of different length can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from zlib import crc32

from duologue.analysis.user_rates import Seen, accepts, verdict
from duologue.simulators._text import question_in, words
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Episode, Message, StopReason, Task, UserTurn

OVER = "over"
"""The label of a dialogue that ended before a turn."""
_MOST = 4
"""Facts told are counted up to here."""
_VERDICTS = {True: "right", False: "wrong", None: "unclear"}


def seen_of(dialogue: Episode | LoggedDialogue, env_id: str, find_task: Callable[[str], Task]) -> Seen:
    """Return a dialogue with its task.

    A logged dialogue brings its task, and its score under ``metadata["reward"]`` if it has one; if the log does not say
    why it ended, it counts as cut. A hash of its id stands for the seed.

    Raises:
        DuologueError: if the task of an episode is unknown.
    """
    if isinstance(dialogue, Episode):
        return Seen(dialogue, find_task(dialogue.task_id))
    reward = dialogue.metadata.get("reward")
    episode = Episode(
        env_id=env_id,
        task_id=dialogue.task.task_id,
        seed=crc32(dialogue.dialogue_id.encode()),
        messages=dialogue.messages,
        stop_reason=dialogue.stop or StopReason.TURN_LIMIT,
        reward=None if reward is None else float(reward),
    )
    return Seen(episode, dialogue.task)


def reached(seen: Seen, turn: int) -> bool:
    """Return True if the assistant spoke this turn."""
    return len(seen.messages) > 2 * turn + 1


def answered(seen: Seen, turn: int) -> bool:
    """Return True if the user answered the assistant's turn, be it by leaving without a word."""
    after = 2 * turn + 2
    return len(seen.messages) > after or (len(seen.messages) == after and seen.episode.stop_reason.is_terminal)


def context_state(seen: Seen, turn: int) -> str:
    """Return what the context comes to: how much the user told, and what became of the last answer or draft."""
    if not reached(seen, turn):
        return OVER
    offers = [i for i in range(1, 2 * turn, 2) if seen.offer(seen.messages[i]["content"])]
    if not offers:
        return f"{_told(seen, 2 * turn + 1)}, no offer"
    i = offers[-1]
    reaction = "accepted" if accepts(seen, i + 1) else "not accepted"
    return f"{_told(seen, 2 * turn + 1)}, {_offer(seen, seen.messages[i]['content'])} {reaction}"


def reply_act(seen: Seen, text: str) -> str:
    """Return what a reply does: offer an answer or draft (right, wrong, unclear), ask, or neither."""
    if seen.offer(text):
        return _offer(seen, text)
    return "asks" if question_in(text) else "talks"


def user_act(seen: Seen, turn: int) -> str:
    """Return what the user did after the assistant's turn: leave and why, accept, tell points, ask, or neither."""
    i = 2 * turn + 2
    if i >= len(seen.messages):
        return f"leaves ({seen.episode.stop_reason.value})"
    if seen.ends_at(i):
        return f"ends ({seen.episode.stop_reason.value})"
    text, told = seen.messages[i]["content"], len(seen.told_by(i + 1) - seen.told_by(i))
    does = "accepts" if accepts(seen, i) else "asks" if question_in(text) else "speaks"
    return f"{does}, tells {min(told, _MOST)}"


def with_answer(seen: Seen, turn: int, answer: UserTurn) -> Seen:
    """Return the dialogue up to the assistant's turn, with another answer of a user."""
    said = seen.messages[: 2 * turn + 2]
    if answer.text or answer.stop is None:
        said = (*said, Message(role="user", content=answer.text))
    stop = answer.stop or StopReason.TURN_LIMIT
    return Seen(replace(seen.episode, messages=said, stop_reason=stop, given=0), seen.task)


def context_tokens(seen: Seen, turn: int, state: str) -> list[str]:
    """Return what a classifier reads: the words by speaker, pairs of words of the last user turn, and the state."""
    if not reached(seen, turn):
        return [OVER]
    context = seen.messages[: 2 * turn + 1]
    found = {f"{m['role']} {word}" for m in context for word in words(m["content"])}
    last = words(context[-1]["content"])
    pairs = {f"last {a} {b}" for a, b in pairwise(last)}
    return [state, *sorted(found | pairs)]


def labels(dialogues: Sequence[Seen], turns: int) -> list[list[str]]:
    """Return the context's label of each dialogue and turn."""
    return [[context_state(seen, turn) for turn in range(turns)] for seen in dialogues]


def _told(seen: Seen, end: int) -> str:
    told, points = len(seen.told_by(end)), len(seen.points)
    if told == points:
        return "all told"
    if seen.is_math:
        return f"{min(told, _MOST)} told"
    return "none told" if not told else "some told" if 2 * told < points else "most told"


def _offer(seen: Seen, text: str) -> str:
    found = seen.offer(text)
    return f"{_VERDICTS[verdict(seen, found)] if found else 'no'} offer"
