"""Tasks from local files."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path

from duologue.envs.tasks.adapters import article_task, gsm8k_task, sharded_gsm8k_task
from duologue.envs.tasks.lists import TaskList, content_hash
from duologue.envs.tasks.rows import Row, existing, read_rows
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task

_FIELDS = tuple(field.name for field in fields(Task))
_MAPPABLE = tuple(name for name in _FIELDS if name != "metadata")
_NEEDED = ("instruction", "reference")
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)
_TITLE_KEY = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_TITLE_LINE = re.compile(r"\A\s*#\s+(.+?)\s*#*\s*$", re.MULTILINE)
_DATE = re.compile(r"^\d{4}-\d\d-\d\d-")


def load_tasks(path: str | Path, columns: Mapping[str, str] | None = None) -> TaskList:
    """Load a JSONL, JSON or Parquet file.

    Args:
        path: the file; in the format of ``Task.to_json`` unless ``columns`` is given. A row without ``task_id`` gets
            ``task-`` and 12 digits of a hash of its instruction, facts and reference.
        columns: task field to column, for any other format, such as ``{"instruction": "question", "reference":
            "answer"}``. Names at least ``instruction`` and ``reference``; without ``task_id``, ids are the file's name
            and the row's number.

    Raises:
        DuologueError: for a missing or broken file, an unknown field or column, or a bad row (with its line).
        MissingExtraError: for Parquet without pyarrow.
    """
    if columns is not None:
        _check_fields(columns)

    def adapt(row: Row, task_id: str) -> Task:
        return _own_task(row) if columns is None else _mapped_task(row, task_id, columns)

    return _load(read_rows(path), adapt, Path(path).stem)


def load_gsm8k(path: str | Path) -> TaskList:
    """Load a GSM8K file (``question``, ``answer`` with the result after ``####``).

    The instruction is the whole question: nothing is held back.

    Raises:
        DuologueError: for a missing or broken file or row.
    """
    return _load(read_rows(path), gsm8k_task, f"gsm8k-{Path(path).stem}")


def load_sharded_gsm8k(path: str | Path) -> TaskList:
    """Load a file of sharded GSM8K: the first shard is the instruction, the other shards are the facts.

    Raises:
        DuologueError: for a missing or broken file or row.
    """
    return _load(read_rows(path), sharded_gsm8k_task, f"sharded-gsm8k-{Path(path).stem}")


def load_articles(path: str | Path) -> TaskList:
    """Load goal documents: a folder of ``.txt`` and ``.md`` files, one such file, or rows with ``title`` and ``text``.

    A file's title is ``title:`` in its front matter, else its first line if that is a ``#`` heading, else its name.
    Front matter and title do not belong to the goal document. Facts are the first sentences of the paragraphs of prose,
    and the outline is the headings, or else the facts (``article_task`` has the rule in full).

    Raises:
        DuologueError: if nothing is there, or a file or row is broken.
        MissingExtraError: for Parquet without pyarrow.
    """
    path = existing(path)
    if path.is_dir():
        rows = [_article_row(file) for file in sorted(path.iterdir()) if file.suffix in (".txt", ".md")]
        if not rows:
            raise DuologueError(f"The folder {str(path)!r} holds no .txt or .md file. Give a folder of articles.")
    else:
        rows = [_article_row(path)] if path.suffix in (".txt", ".md") else read_rows(path)
    return _load(rows, article_task, f"articles-{path.stem}")


def _load(rows: Iterable[Row], adapt: Callable[[Row, str], Task], name: str) -> TaskList:
    return TaskList([adapt(row, f"{name}-{number:06d}") for number, row in enumerate(rows)], name)


def _check_fields(columns: Mapping[str, str]) -> None:
    for name in columns:
        if name not in _MAPPABLE:
            raise DuologueError(f"columns: a task has no field {name!r} to fill. {did_you_mean(name, _MAPPABLE)}")
    for name in _NEEDED:
        if name not in columns:
            raise DuologueError(f"columns: no column for {name!r}. Add {name!r}: 'NAME OF THE COLUMN'.")


def _own_task(row: Row) -> Task:
    for name in row.data:
        if name not in _FIELDS:
            raise row.error(
                f"a task has no field {name!r}. {did_you_mean(name, _FIELDS)} For another format, pass columns={{…}}."
            )
    metadata = row.data.get("metadata", {})
    if not isinstance(metadata, dict):
        raise row.error(f"'metadata' must be an object, but is {metadata!r:.80}. Correct this row.")
    present = (*_NEEDED, *(name for name in _MAPPABLE if name in row.data))
    task = _mapped_task(row, "", {name: name for name in present}, metadata)
    return task if task.task_id else replace(task, task_id=f"task-{content_hash(task)[:12]}")


def _mapped_task(
    row: Row, task_id: str, columns: Mapping[str, str], metadata: Mapping[str, str | int | float] | None = None
) -> Task:
    return Task(
        task_id=row.text(columns["task_id"]) if "task_id" in columns else task_id,
        instruction=row.text(columns["instruction"]),
        reference=row.text(columns["reference"]),
        solution=str(row.get(columns["solution"])) if "solution" in columns else "",
        facts=row.texts(columns["facts"]) if "facts" in columns else (),
        outline=row.texts(columns["outline"]) if "outline" in columns else (),
        metadata=metadata or {},
    )


def _article_row(file: Path) -> Row:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DuologueError(f"Cannot read {str(file)!r} ({error}). Give readable files in UTF-8.") from error
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    named = _TITLE_KEY.search(front[1]) if front else None
    headed = _TITLE_LINE.match(body)
    body = body[headed.end() :] if headed else body
    title = (named or headed or (None, _DATE.sub("", file.stem).replace("-", " ").replace("_", " ")))[1]
    return Row(file.name, {"title": title, "text": body})
