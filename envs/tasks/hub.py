"""Tasks from the Hugging Face hub, through ``datasets`` (the extra ``hub``)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from duologue.envs.tasks.adapters import (
    article_task,
    collabllm_document_task,
    collabllm_math_task,
    gsm8k_task,
    math_task,
)
from duologue.envs.tasks.lists import TaskList, content_hash
from duologue.envs.tasks.rows import Row
from duologue.errors import DuologueError, MissingExtraError, did_you_mean
from duologue.types import Task


@dataclass(frozen=True, slots=True)
class HubSet:
    """How to read one data set of the hub."""

    adapt: Callable[[Row, str], Task]
    """From a row and an id to a task."""
    env: str
    """The environment that its tasks are for."""
    split: str = "train"
    """The split that is loaded if none is asked for."""
    config: str | None = None
    """The configuration, where the set has several."""


HUB_SETS: Mapping[str, HubSet] = {
    "openai/gsm8k": HubSet(gsm8k_task, "MathChat", config="main"),
    "HuggingFaceH4/MATH-500": HubSet(math_task, "MathChat", split="test"),
    "lighteval/MATH-Hard": HubSet(math_task, "MathChat"),
    "collabllm/collabllm-multiturn-math-hard": HubSet(collabllm_math_task, "MathChat"),
    "collabllm/collabllm-multiturn-math-hard-large": HubSet(collabllm_math_task, "MathChat"),
    "Kamaljp/medium_articles": HubSet(article_task, "MediumDocEditChat"),
    "collabllm/collabllm-multiturn-medium": HubSet(collabllm_document_task, "MediumDocEditChat"),
    "collabllm/collabllm-multiturn-medium-large": HubSet(collabllm_document_task, "MediumDocEditChat"),
}
"""The data sets that ``load_hub`` knows, by id."""


def hub_set(dataset_id: str) -> HubSet:
    """Return how to read a data set.

    Raises:
        DuologueError: if it is not known.
    """
    if dataset_id not in HUB_SETS:
        raise DuologueError(
            f"No adapter for the hub's data set {dataset_id!r}. {did_you_mean(dataset_id, HUB_SETS)} For any other, "
            "save it as Parquet or JSONL and call load_tasks(path, columns={…})."
        )
    return HUB_SETS[dataset_id]


def load_hub(dataset_id: str, split: str | None = None, limit: int | None = None) -> TaskList:
    """Load a data set of the hub. Rows that repeat a task (several turns or replies of one dialogue) give one task.

    Args:
        dataset_id: one of ``HUB_SETS``.
        split: the set's own split; None = its usual one.
        limit: at most so many tasks, from the first on; they are streamed, so the rest is not downloaded.

    Raises:
        DuologueError: for an unknown set or split, a bad row, or if the hub cannot be reached.
        MissingExtraError: without ``datasets``.
    """
    known = hub_set(dataset_id)
    split = known.split if split is None else split
    if limit is not None and limit < 1:
        raise DuologueError(f"limit must be 1 or more, got {limit}. Leave it out to load everything.")
    rows = _rows(dataset_id, known.config, split, streaming=limit is not None)
    name = f"{dataset_id}-{split}"
    return TaskList(islice(_tasks(rows, known, name), limit), name if limit is None else f"{name}-first-{limit}")


def _tasks(rows: Iterable[Row], known: HubSet, name: str) -> Iterator[Task]:
    seen: set[str] = set()
    for number, row in enumerate(rows):
        task = known.adapt(row, f"{name}-{number:06d}")
        content = content_hash(task)
        if content not in seen:
            seen.add(content)
            yield task


def _rows(dataset_id: str, config: str | None, split: str, streaming: bool) -> Iterator[Row]:
    load = _load_dataset()
    try:
        data = load(dataset_id, config, split=split, streaming=streaming)
        for number, values in enumerate(data):
            yield Row(f"{dataset_id} ({split}), row {number}", values)
    except DuologueError:
        raise
    except Exception as error:  # whatever went wrong below (network, hub, cache, split): what to do is the same
        raise DuologueError(
            f"Could not load {dataset_id!r}, split {split!r}, from the hub ({type(error).__name__}: {error}). Check "
            "the split's name and the network; without a network, download the set first on another machine and copy "
            "the cache (HF_HOME), or pass a local file to load_tasks or load_gsm8k."
        ) from error


def _load_dataset() -> Callable[..., Iterable[Mapping[str, Any]]]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingExtraError("Loading data sets from the hub", "hub") from error
    function: Callable[..., Iterable[Mapping[str, Any]]] = load_dataset
    return function
