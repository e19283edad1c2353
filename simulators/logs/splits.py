"""Deterministic, disjoint splits of logged dialogues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Literal

from duologue.errors import DuologueError, did_you_mean
from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.disjoint import task_hash

By = Literal["dialogue", "person", "task"]
_KINDS = ("dialogue", "person", "task")


def split_logs(
    dialogues: Sequence[LoggedDialogue], shares: Mapping[str, float], by: By = "dialogue", seed: int = 0
) -> dict[str, list[LoggedDialogue]]:
    """Split dialogues by a hash of what is kept together. Sizes match ``shares`` on average, not exactly.

    Dialogues with the same task and words land in one part, whatever ``by`` says: persons or tasks that share such a
    dialogue stay together. Otherwise a dialogue's part depends on its own person, task or words and on ``seed`` alone,
    so that dialogues added later move none.

    Args:
        dialogues: in their order, which each part keeps.
        shares: share of each part; positive, with a sum of 1.
        by: what is kept together: nothing but equal dialogues, all of a person's, or all on a task (instruction and
            reference).
        seed: another seed gives another split.

    Raises:
        DuologueError: if the shares are none, a person is not known, or a part gets no dialogue.
    """
    if by not in _KINDS:
        raise DuologueError(f"by is {by!r}. {did_you_mean(str(by), _KINDS)}")
    if abs(sum(shares.values()) - 1) > 1e-9 or min(shares.values(), default=0) <= 0:
        raise DuologueError(f"Shares must be positive with a sum of 1, got {dict(shares)}. Change them.")
    parts: dict[str, list[LoggedDialogue]] = {name: [] for name in shares}
    limits = dict(zip(shares, accumulate(shares.values()), strict=True))
    for dialogue, group in zip(dialogues, _groups(dialogues, by), strict=True):
        place = _place(group, seed)
        parts[next((name for name, limit in limits.items() if place < limit), list(limits)[-1])].append(dialogue)
    _refuse_empty(parts, by)
    return parts


def _groups(dialogues: Sequence[LoggedDialogue], by: By) -> list[str]:
    """Return a name of each dialogue's group; equal words join the groups that hold them."""
    parent: dict[str, str] = {}
    keys = [_key(dialogue, by) for dialogue in dialogues]
    first: dict[str, str] = {}
    for dialogue, key in zip(dialogues, keys, strict=True):
        one, other = _root(parent, key), _root(parent, first.setdefault(dialogue.content_hash, key))
        parent[max(one, other)] = min(one, other)  # the least key names a group, whatever the order of rows
    return [_root(parent, key) for key in keys]


def _root(parent: dict[str, str], key: str) -> str:
    while parent.setdefault(key, key) != key:
        key = parent[key]
    return key


def _key(dialogue: LoggedDialogue, by: By) -> str:
    if by == "task":
        return task_hash(dialogue.task)
    if by == "dialogue":
        return dialogue.content_hash
    if dialogue.person is None:
        raise DuologueError(
            f"It is not known whose dialogue {dialogue.dialogue_id!r} is, so it cannot be split by person. Fill in "
            "'person', or split by task or dialogue."
        )
    return dialogue.person


def _place(group: str, seed: int) -> float:
    """Return the group's place in [0, 1)."""
    return int.from_bytes(sha256(f"{seed}:{group}".encode()).digest()[:6], "big") / 2**48


def _refuse_empty(parts: Mapping[str, Sequence[LoggedDialogue]], by: str) -> None:
    total = sum(map(len, parts.values()))
    for name, part in parts.items():
        if not part:
            raise DuologueError(
                f"Of {total} dialogues, split by {by}, none falls into {name!r}. Give more dialogues, a larger share "
                "or another seed."
            )
