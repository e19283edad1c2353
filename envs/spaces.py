"""A space of Unicode strings that is cheap, and right in every kind of Gymnasium vector environment.

Gymnasium's ``Text`` enumerates its characters, so all of Unicode costs it megabytes and tens of milliseconds. Worse, it
decodes the shared memory of ``AsyncVectorEnv`` once, at construction, and returns that text for ever. ``UnicodeText``
hands out a live view instead, which decodes when it is read or copied.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Sequence
from multiprocessing.context import BaseContext
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any, overload

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import (
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from numpy.typing import NDArray

from duologue.errors import DuologueError

_SURROGATE = re.compile("[\ud800-\udfff]")
_CODE_POINTS = 0x110000
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800
_LONGEST_SAMPLE = 64


class UnicodeText(Space[str]):
    """Strings of 0 to ``max_length`` characters: any of Unicode but lone surrogates, which no encoding can write."""

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        """Make the space.

        Args:
            max_length: most characters (code points) that a text may have.
            seed: seed of the generator that ``sample`` uses.

        Raises:
            DuologueError: if ``max_length`` is below 1.
        """
        if max_length < 1:
            raise DuologueError(f"max_length is {max_length}: a text space needs at least 1 character. Pass more.")
        self.max_length = int(max_length)
        super().__init__(dtype=str, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Return a random text of at most 64 characters, drawn from all of Unicode; masks are not supported."""
        if mask is not None or probability is not None:
            raise DuologueError("UnicodeText samples without masks. Leave out mask and probability.")
        length = int(self.np_random.integers(0, min(self.max_length, _LONGEST_SAMPLE) + 1))
        points = self.np_random.integers(0, _CODE_POINTS - _SURROGATES, length, dtype=np.int32)
        return _decode(np.where(points < _FIRST_SURROGATE, points, points + _SURROGATES).astype(np.int32))

    def contains(self, x: Any) -> bool:
        """Return True for a string that is short enough and can be encoded."""
        return isinstance(x, str) and len(x) <= self.max_length and _SURROGATE.search(x) is None

    @property
    def is_np_flattenable(self) -> bool:
        """Return False: text has no fixed shape."""
        return False

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))


def without_surrogates(text: str) -> str:
    """Return the text with each lone surrogate replaced by U+FFFD, so that it can be encoded."""
    return _SURROGATE.sub("\ufffd", text)


class SharedTexts(Sequence[str]):
    """The texts of all environments as they are in shared memory now. A deep copy is a plain tuple of strings."""

    def __init__(self, cells: NDArray[np.int32]) -> None:
        """Look at ``cells``, shape (environments, 1 + max_length): a length, then that many code points."""
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._cells[index]
        return _decode(row[1 : 1 + row[0]])

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return f"SharedTexts({tuple(self)!r})"


def _decode(points: NDArray[np.int32]) -> str:
    return points.astype("<i4").tobytes().decode("utf-32-le")


# Batching and concatenation are Gymnasium's defaults for any space (a Tuple space, a tuple of strings). ``iterate``
# must stay unregistered, or else Gymnasium walks through the characters of the texts instead of through the texts.


@create_empty_array.register(UnicodeText)
def _empty_texts(space: UnicodeText, n: int = 1, fn: Any = None) -> tuple[str, ...]:
    return ("",) * n


@create_shared_memory.register(UnicodeText)
def _create_shared_texts(space: UnicodeText, n: int = 1, ctx: BaseContext | None = None) -> SynchronizedArray[int]:
    return (ctx or multiprocessing.get_context()).Array("i", n * (1 + space.max_length))


@read_from_shared_memory.register(UnicodeText)
def _read_shared_texts(space: UnicodeText, shared_memory: SynchronizedArray[int], n: int = 1) -> SharedTexts:
    return SharedTexts(_cells(space, shared_memory).reshape(n, 1 + space.max_length))


@write_to_shared_memory.register(UnicodeText)
def _write_shared_text(space: UnicodeText, index: int, value: str, shared_memory: SynchronizedArray[int]) -> None:
    if value not in space:
        raise DuologueError(f"A text of {len(value)} characters is not in {space!r}. Raise max_chars.")
    row = _cells(space, shared_memory).reshape(-1, 1 + space.max_length)[index]
    row[1 : 1 + len(value)] = np.frombuffer(value.encode("utf-32-le"), dtype="<i4")
    row[0] = len(value)


def _cells(space: UnicodeText, shared_memory: SynchronizedArray[int]) -> NDArray[np.int32]:
    return np.frombuffer(shared_memory.get_obj(), dtype=np.int32)  # type: ignore[call-overload, no-any-return]
