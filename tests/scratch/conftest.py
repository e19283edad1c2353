"""Shared by the tests of notices, their writer and models trained from scratch."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from duologue.envs.tasks import NoticeTasks
from duologue.types import Message, Task


@pytest.fixture
def notices() -> Callable[..., list[Task]]:
    """Return the first notices of a split."""

    def first(n: int = 60, split: str = "train") -> list[Task]:
        source: Iterator[Task] = iter(NoticeTasks(split))
        return list(islice(source, n))

    return first


def history(*texts: str) -> list[Message]:
    """Return texts as messages in turn, the user first."""
    return [Message(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(texts)]


@pytest.fixture
def said() -> Callable[..., list[Message]]:
    return history
