"""Task sources from short strings, for command lines and configuration files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from duologue.envs.tasks.base import TaskSource
from duologue.envs.tasks.documents import DocumentTasks
from duologue.envs.tasks.files import load_articles, load_gsm8k, load_sharded_gsm8k, load_tasks
from duologue.envs.tasks.hub import hub_set, load_hub
from duologue.envs.tasks.lists import TaskList
from duologue.envs.tasks.math import MathTasks
from duologue.envs.tasks.notices import NoticeTasks
from duologue.envs.tasks.splits import one_split
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task

Options = Mapping[str, str]
MATH, DOCUMENT = "MathChat", "MediumDocEditChat"


def make_tasks(spec: TaskSource | Sequence[Task] | str | None, env: str = MATH) -> TaskSource:
    """Return a task source.

    Args:
        spec: a source (returned as it is), tasks, None (the environment's usual tasks: ``math:level=1,split=train`` or
            ``documents:length=short,split=train``), the path of a file in the format of ``Task.to_json``, or one of

            - ``math:level=2,split=test``
            - ``documents:length=long,split=test`` (``length=all`` for both)
            - ``notices:split=test``, with ``,families=lost+sale`` only these kinds
            - ``file:PATH``, ``gsm8k:PATH``, ``sharded-gsm8k:PATH``, ``articles:PATH``; with ``,split=NAME`` the part
              that ``split_tasks`` calls so
            - ``hub:DATASET_ID``, with ``,split=NAME`` and ``,limit=N``
        env: ``MathChat`` or ``MediumDocEditChat``.

    Raises:
        DuologueError: for an unknown name, key or value, tasks for the other environment, or what the loaders raise.
    """
    if env not in (MATH, DOCUMENT):
        raise DuologueError(f"No environment {env!r} to make tasks for. {did_you_mean(env, (MATH, DOCUMENT))}")
    if spec is None:
        return MathTasks() if env == MATH else DocumentTasks()
    if isinstance(spec, str):
        return _from_text(spec, env)
    if hasattr(spec, "draw") and hasattr(spec, "find"):
        return cast(TaskSource, spec)
    if isinstance(spec, Sequence) and all(isinstance(task, Task) for task in spec):
        return TaskList(cast("Sequence[Task]", spec))
    raise DuologueError(f"Cannot make tasks from {spec!r:.80}. Give a task source, a list of Task or a string.")


@dataclass(frozen=True, slots=True)
class _Kind:
    make: Callable[[str, Options], TaskSource]
    keys: tuple[str, ...]
    env: str | None = None
    takes: str = ""
    """What stands after the colon before the options; empty if nothing does."""


def _from_text(spec: str, env: str) -> TaskSource:
    name, _, rest = spec.partition(":")
    if name not in KINDS:
        if Path(spec).is_file():
            return load_tasks(spec)
        raise DuologueError(f"No tasks {spec!r}: no such file, nor such a kind. {did_you_mean(name, KINDS)}")
    kind = KINDS[name]
    subject, options = _parse(spec, rest, kind)
    made_for = hub_set(subject).env if name == "hub" else kind.env
    if made_for not in (None, env):
        raise DuologueError(f"The tasks {spec!r} are for {made_for}, not for {env}. Choose others or that environment.")
    return kind.make(subject, options)


def _parse(spec: str, rest: str, kind: _Kind) -> tuple[str, dict[str, str]]:
    """Split what stands after the colon into the subject (a path or an id) and the options."""
    pieces = [rest] if kind.takes and Path(rest).exists() else rest.split(",")
    subject = pieces.pop(0) if kind.takes else ""
    if kind.takes and not subject:
        raise DuologueError(f"The tasks {spec!r} lack what to load. Write {spec.partition(':')[0]}:{kind.takes}.")
    options: dict[str, str] = {}
    for piece in filter(None, pieces):
        key, equals, value = piece.partition("=")
        if key not in kind.keys:
            raise DuologueError(f"The tasks {spec!r} have no option {key!r}. {did_you_mean(key, kind.keys)}")
        if not equals or not value or key in options:
            raise DuologueError(f"The tasks {spec!r} need one value for {key!r}. Write {key}=VALUE once.")
        options[key] = value
    return subject, options


def _whole(options: Options, key: str) -> int:
    if not options[key].isdecimal():
        raise DuologueError(f"{key} must be a whole number, got {options[key]!r}. Write {key}=1, for example.")
    return int(options[key])


def _math(_: str, options: Options) -> TaskSource:
    return MathTasks(_whole({"level": "1", **options}, "level"), options.get("split", "train"))


def _documents(_: str, options: Options) -> TaskSource:
    length = options.get("length", "short")
    return DocumentTasks(None if length == "all" else length, options.get("split", "train"))


def _notices(_: str, options: Options) -> TaskSource:
    families = options["families"].split("+") if "families" in options else None
    return NoticeTasks(options.get("split", "train"), families)


def _local(load: Callable[[str], TaskList]) -> Callable[[str, Options], TaskSource]:
    def make(path: str, options: Options) -> TaskSource:
        tasks = load(path)
        return one_split(tasks, options["split"]) if "split" in options else tasks

    return make


def _hub(dataset_id: str, options: Options) -> TaskSource:
    return load_hub(dataset_id, options.get("split"), _whole(options, "limit") if "limit" in options else None)


KINDS: Mapping[str, _Kind] = {
    "math": _Kind(_math, ("level", "split"), MATH),
    "documents": _Kind(_documents, ("length", "split"), DOCUMENT),
    "notices": _Kind(_notices, ("split", "families"), DOCUMENT),
    "file": _Kind(_local(load_tasks), ("split",), takes="PATH"),
    "gsm8k": _Kind(_local(load_gsm8k), ("split",), MATH, takes="PATH"),
    "sharded-gsm8k": _Kind(_local(load_sharded_gsm8k), ("split",), MATH, takes="PATH"),
    "articles": _Kind(_local(load_articles), ("split",), DOCUMENT, takes="PATH"),
    "hub": _Kind(_hub, ("split", "limit"), takes="DATASET_ID"),
}
"""The kinds of specs, by the name before the colon."""
