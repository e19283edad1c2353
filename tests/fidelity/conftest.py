"""People are scripted users here, so that it is known how they differ from other users."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from duologue.analysis.collect import CollectConfig, collect
from duologue.analysis.fidelity.turns import Talk, Turn
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.types import Task

CALM = "default,miss_error=0.1,doubt_right=0,confusion=0.05,volunteers=0"
"""Users who differ little from each other."""
TASK = Task("t", "How many apples?", "5", facts=("Tom has 2.", "Ann has 3."))
MakeTalk = Callable[..., Talk]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> list[LoggedDialogue]:
    """160 dialogues of calm users with an assistant that slips."""
    output = tmp_path_factory.mktemp("people") / "people.jsonl"
    agent = "scripted:hasty-math,haste=0.4,slips=0.4"
    return collect(CollectConfig("MathChat-v0", agent, f"scripted:{CALM}", episodes=160, output=str(output)))


@pytest.fixture(scope="session")
def halves(people: list[LoggedDialogue], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two files of 20 dialogues each."""
    folder: Path = tmp_path_factory.mktemp("halves")
    files = [write_logs(folder / f"{i}.jsonl", people[20 * i : 20 * i + 20]) for i in range(2)]
    return str(files[0]), str(files[1])


@pytest.fixture
def talk() -> MakeTalk:
    def make(*texts: str, name: str = "d", task: Task = TASK) -> Talk:
        return Talk(name, tuple(Turn("MathChat-v0", task, (), text) for text in texts))

    return make
