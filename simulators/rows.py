"""Rows of local data files, each with the words that an error needs to point at it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from duologue.errors import DuologueError, MissingExtraError, did_you_mean


class Row(NamedTuple):
    """One row of a data set."""

    where: str
    """For error messages, such as ``tasks.jsonl, line 3``."""
    data: Mapping[str, Any]
    """Column name to value."""

    def get(self, column: str) -> Any:
        """Return the value of a column.

        Raises:
            DuologueError: if the row lacks it; the message names the nearest column.
        """
        if column not in self.data:
            raise DuologueError(f"{self.where} has no column {column!r}. {did_you_mean(column, self.data)}")
        return self.data[column]

    def text(self, column: str) -> str:
        """Return a column as text without blanks around it; a number becomes text.

        Raises:
            DuologueError: if the row lacks it, or it holds no text.
        """
        value = self.get(column)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"column {column!r} must hold text, but holds {value!r:.80}. Correct or remove this row.")
        return value.strip()

    def texts(self, column: str) -> tuple[str, ...]:
        """Return a column that holds a list of texts; a single text becomes a list of one.

        Raises:
            DuologueError: if the row lacks it, or it holds something else.
        """
        value = self.get(column)
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(f"column {column!r} must hold a list of texts, but holds {value!r:.80}. Correct this row.")
        return tuple(value)

    def error(self, problem: str) -> DuologueError:
        """Return an error that names this row; ``problem`` ends with the fix."""
        return DuologueError(f"{self.where}: {problem}")


def existing(path: str | Path) -> Path:
    """Return the path.

    Raises:
        DuologueError: if nothing is there; the message names the nearest file beside it.
    """
    path = Path(path)
    if path.exists():
        return path
    if not path.parent.is_dir():
        raise DuologueError(f"There is no {str(path)!r}: its folder does not exist either. Check the path.")
    siblings = [entry.name for entry in path.parent.iterdir()]
    hint = did_you_mean(path.name, siblings) if siblings else "Its folder is empty. Check the path."
    raise DuologueError(f"There is no {str(path)!r}. {hint if len(hint) < 300 else 'Check the path.'}")


def read_rows(path: str | Path) -> list[Row]:
    """Read a JSONL, JSON (one array of objects) or Parquet file.

    Raises:
        DuologueError: if there is no such file, it is of another kind, is broken (with the line) or holds no row.
        MissingExtraError: for Parquet without pyarrow.
    """
    path = existing(path)
    readers = {".jsonl": _jsonl, ".json": _json, ".parquet": _parquet}
    if path.suffix not in readers:
        raise DuologueError(f"Cannot read {path.name!r} as rows. Choose a file of a kind in {', '.join(readers)}.")
    rows = list(readers[path.suffix](path))
    if not rows:
        raise DuologueError(f"{path.name} holds no rows. Give a file with at least one.")
    return rows


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DuologueError(f"Cannot read {str(path)!r} ({error}). Give a readable file in UTF-8.") from error


def _jsonl(path: Path) -> Iterator[Row]:
    # Not splitlines(): JSON text may hold U+2028 and the like unescaped.
    for number, line in enumerate(_text_of(path).split("\n"), start=1):
        if line.strip():
            where = f"{path.name}, line {number}"
            yield _row(where, _parse(line, where))


def _json(path: Path) -> Iterator[Row]:
    values = _parse(_text_of(path), path.name)
    if not isinstance(values, list):
        raise DuologueError(f"{path.name} must hold one JSON array of objects. For an object a line, name it .jsonl.")
    for number, value in enumerate(values, start=1):
        where = f"{path.name}, item {number}"
        yield _row(where, value)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DuologueError(f"{where} is not JSON ({error}). Correct or remove it.") from error


def _row(where: str, value: Any) -> Row:
    if not isinstance(value, dict):
        raise DuologueError(f"{where} must be a JSON object with named columns, got {value!r:.80}. Correct it.")
    return Row(where, value)


def _parquet(path: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "hub") from error
    try:
        values = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        raise DuologueError(f"{path.name} is not readable as Parquet ({error}). Write the file again.") from error
    return (Row(f"{path.name}, row {number}", value) for number, value in enumerate(values, start=1))
