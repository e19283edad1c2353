"""The reward contract as a function, for whoever writes a reward."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

from duologue.errors import DuologueError
from duologue.rewards.base import Reward, signature_of
from duologue.types import Dialogue, Message, Task

_Scores = list[float | None]

_MATH = Task("check-math", "How many apples are left?", "12")
_TEXT = "Bees sleep at night. They hold each other by the feet, and some fall out of their flower."
_DOCUMENT = Task("check-document", "Help me write about bees.", _TEXT)


def _examples() -> list[Dialogue]:
    """Return finished dialogues that succeed, fail, and are not over with one assistant turn."""
    replies = (
        (_MATH, ("The answer is 12.",)),
        (_MATH, ("How many were there?", "Answer: 7")),
        (_MATH, ("I do not know.",)),
        (_MATH, ("Answer: 3 or 4",)),
        (_DOCUMENT, (f"<document>{_TEXT}</document>",)),
        (_DOCUMENT, ("What about them?", "<document>Bees sleep. Some fall out of bed.</document>")),
        (_DOCUMENT, ("",)),
    )
    dialogues = []
    for seed, (task, texts) in enumerate(replies):
        dialogue = Dialogue(task, seed).then("user", task.instruction)
        for text in texts:
            dialogue = dialogue.then("assistant", text).then("user", "Go on, please.")
        dialogues.append(dialogue)
    return dialogues


def _call(reward: Reward, dialogues: Sequence[Dialogue], what: str) -> _Scores:
    """Call the reward and check the form of what it returns."""
    name = signature_of(reward)
    try:
        scores = reward(dialogues)
    except Exception as error:
        raise DuologueError(
            f"{name} raised {error!r} on {what}. A reward scores every dialogue: return 0.0 for a bad one, "
            "None for one that it cannot score."
        ) from error
    if not isinstance(scores, list) or len(scores) != len(dialogues):
        raise DuologueError(
            f"{name} returned {scores!r:.200} for {len(dialogues)} dialogues ({what}). Return a list with exactly one "
            "score per dialogue, in order."
        )
    for value in scores:
        if value is not None and (not isinstance(value, (int, float)) or not math.isfinite(value)):
            raise DuologueError(
                f"{name} returned the score {value!r} on {what}. Return finite floats, or None for not scored "
                "(convert tensors and NumPy scalars by float())."
            )
    return scores


def _require_same(reward: Reward, found: _Scores, expected: _Scores, fault: str) -> None:
    """Raise the fault if scores differ by more than rounding."""
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one != other and (one is None or other is None or not math.isclose(one, other, abs_tol=1e-9)):
            raise DuologueError(f"{signature_of(reward)} scored dialogue {i} {one}, before {other}: {fault}")


def _user_says(dialogue: Dialogue, text: str) -> Dialogue:
    """Return the dialogue with other words in the user's mouth."""
    messages = (Message(role="user", content=text) if m["role"] == "user" else m for m in dialogue.messages)
    return replace(dialogue, messages=tuple(messages))


def _check_batching(reward: Reward, dialogues: Sequence[Dialogue], scores: _Scores) -> None:
    """Check that a score depends on its own dialogue alone."""
    fault = "the order of the batch changed it. Probably scores leak between rows, or are sorted; score each alone."
    _require_same(reward, _call(reward, dialogues[::-1], "a reversed batch")[::-1], scores, fault)
    fault = "its company in the batch changed it. Do not normalise over the batch; that is the trainer's part."
    alone = [_call(reward, [dialogue], "a single dialogue")[0] for dialogue in dialogues]
    _require_same(reward, alone, scores, fault)


def _check_user_words(reward: Reward, dialogues: Sequence[Dialogue], scores: _Scores) -> None:
    """Check that the user cannot score: the gold answer in the user's mouth changes nothing."""
    fault = "the user's words changed it. Read dialogue.said_by('assistant'), not all messages."
    for form in ("", "The answer is {}.", "<document>{}</document>", "{}"):
        said = [_user_says(d, form.format(d.task.reference)) for d in dialogues]
        _require_same(reward, _call(reward, said, "dialogues whose user says the reference"), scores, fault)


def check_reward(reward: Reward, dialogues: Sequence[Dialogue] | None = None) -> None:
    """Check a reward against the contract: form of the result, independence of rows, deafness to the user, empty cases.

    Args:
        reward: the reward to check; it is called about a dozen times.
        dialogues: finished dialogues to try it on; without them, a few of a math and of a document task.

    Raises:
        DuologueError: at the first fault, with its probable cause.
    """
    dialogues = _examples() if dialogues is None else list(dialogues)
    _call(reward, [], "an empty batch")
    before = deepcopy(dialogues)
    scores = _call(reward, dialogues, "ordinary dialogues")
    if dialogues != before:
        raise DuologueError(f"{signature_of(reward)} changed the dialogues it was given. Work on copies of messages.")
    _check_batching(reward, dialogues, scores)
    _check_user_words(reward, dialogues, scores)
    _call(reward, [replace(d, messages=()) for d in dialogues], "dialogues without messages")
    _call(reward, [replace(d, messages=d.messages[:1]) for d in dialogues], "dialogues without an assistant turn")
