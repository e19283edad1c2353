"""Short notices, made on demand: a task small enough for a language model that was trained from scratch."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count

import numpy as np

from duologue.envs.tasks.dice import Dice
from duologue.envs.tasks.notice_families import FAMILIES, Family
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task

SPLITS = ("train", "validation", "test")
WORDING = sha256(repr(FAMILIES).encode()).hexdigest()[:8]
"""Hash of all wordings and values."""

_BUCKETS = ("train",) * 7 + ("validation",) + ("test",) * 2
_DRAWN_FROM = 10_000_000
_ID = re.compile(r"notice-(?P<family>\w+)-(?P<split>\w+)-(?P<index>\d{7,})")


class NoticeTasks:
    """An unlimited source of short notices (25 to 45 words) of which the user knows five facts.

    The instruction names the kind of notice and its topic, which are public. Each fact holds one value, such as a day
    or a name, and shares nothing else with the notice; so a draft makes a fact only if it has the value. The outline
    is the facts.

    A notice's split follows from a hash of its kind, topic and values: 7 in 10 are train, 1 in 10 validation, 2 in 10
    test. The splits share kinds and single values, and no notice. All choices come from SHA-256 of the id.

    Args:
        split: ``train``, ``validation`` or ``test``.
        families: names of kinds; None = all of ``meeting``, ``lost``, ``closure``, ``sale``, ``class``, ``helpers``.

    Raises:
        DuologueError: for an unknown split or family, or no family.
    """

    def __init__(self, split: str = "train", families: Sequence[str] | None = None) -> None:
        if split not in SPLITS:
            raise DuologueError(f"There is no notice split {split!r}. {did_you_mean(split, SPLITS)}")
        self.split = split
        self.families = tuple(map(find_family, families)) if families is not None else FAMILIES
        if not self.families:
            raise DuologueError("There are no kinds of notices to choose from. Name one, or leave families out.")

    @property
    def signature(self) -> str:
        """Return kinds, split and a hash of the wording."""
        kinds = "all" if self.families == FAMILIES else "+".join(family.name for family in self.families)
        return f"notices(families={kinds},split={self.split},sha256={WORDING})"

    def draw(self, rng: np.random.Generator) -> Task:
        """Return one of the first ten million tasks of a kind, each kind with the same probability."""
        family = self.families[int(rng.integers(len(self.families)))]
        return _make(family, self.split, int(rng.integers(_DRAWN_FROM)))

    def find(self, task_id: str) -> Task:
        """Make the task with this id again.

        Raises:
            DuologueError: if the id is none of this source's; the message shows one that is.
        """
        match = _ID.fullmatch(task_id)
        family = next((f for f in self.families if match and f.name == match["family"]), None)
        if match and family and task_id == _id(family, self.split, int(match["index"])):
            return _make(family, self.split, int(match["index"]))
        example = _id(self.families[0], self.split, 0)
        raise DuologueError(f"No task {task_id!r} in {self.signature}. Ids look like {example!r}.")

    def __iter__(self) -> Iterator[Task]:
        """Count up, one task of each kind in turn, without end."""
        return (_make(family, self.split, index) for index in count() for family in self.families)


def find_family(name: str) -> Family:
    """Return the kind of notice with this name.

    Raises:
        DuologueError: if there is none.
    """
    known = {family.name: family for family in FAMILIES}
    if name not in known:
        raise DuologueError(f"There is no kind of notice {name!r}. {did_you_mean(str(name), known)}")
    return known[name]


def _make(family: Family, split: str, index: int) -> Task:
    task_id = _id(family, split, index)
    values = _values(family, split, task_id)
    facts = tuple(slot.fact.format(values[slot.name]) for slot in family.slots)
    return Task(
        task_id=task_id,
        instruction=family.request.format(topic=values["topic"]),
        reference=family.text.format(**values),
        facts=facts,
        outline=facts,
        metadata={"kind": family.name, "split": split},
    )


def _values(family: Family, split: str, seed: str) -> dict[str, str]:
    """Return the first topic and values of this split."""
    for attempt in count():
        dice = Dice(f"{seed}/{attempt}")
        values = {"topic": dice.pick(family.topics)} | {slot.name: dice.pick(slot.values) for slot in family.slots}
        if _split_of(family, values) == split:
            return values
    raise AssertionError("unreachable: every kind has notices in every split")


def _split_of(family: Family, values: dict[str, str]) -> str:
    key = "|".join([family.name, *(f"{name}={value}" for name, value in values.items())])
    return _BUCKETS[int.from_bytes(sha256(key.encode()).digest(), "big") % len(_BUCKETS)]


def _id(family: Family, split: str, index: int) -> str:
    return f"notice-{family.name}-{split}-{index:07d}"
