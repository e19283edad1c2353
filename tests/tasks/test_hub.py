from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from duologue.envs.tasks import hub, load_hub
from duologue.envs.tasks.adapters import boxed
from duologue.errors import DuologueError, MissingExtraError

MULTITURN = {"prompt": [], "completion": "Hi", "conv_id": 1, "score": 0.5, "single_turn_metadata": {}}
ROWS: dict[str, list[dict[str, Any]]] = {
    "openai/gsm8k": [{"question": "How many?", "answer": "1+1=<<1+1=2>>2\n#### 2"}],
    "HuggingFaceH4/MATH-500": [
        {"problem": "What is $x$?", "solution": "So $x=\\boxed{1}$.", "answer": "1", "subject": "Algebra", "level": 2}
    ],
    "lighteval/MATH-Hard": [
        {
            "problem": "Halve 1.",
            "solution": "\\boxed{3} no, $\\boxed{\\frac{1}{2}}$.",
            "level": "Level 5",
            "type": "Algebra",
        }
    ],
    "Kamaljp/medium_articles": [
        {
            "title": "On\nbees",
            "text": "Bees are very small animals. Yes.",
            "url": "",
            "authors": "",
            "timestamp": "",
            "tags": "",
        }
    ],
    "collabllm/collabllm-multiturn-math-hard": [
        {**MULTITURN, "single_turn_prompt": "Add.", "single_turn_completion": "It is \\boxed{5}."},
        {**MULTITURN, "single_turn_prompt": "Add.", "single_turn_completion": "It is \\boxed{5}.", "score": 0.1},
        {**MULTITURN, "single_turn_prompt": "Sub.", "single_turn_completion": "6"},
    ],
    "collabllm/collabllm-multiturn-medium": [
        {**MULTITURN, "single_turn_prompt": "Write on bees.", "single_turn_completion": "Bees are very small animals."}
    ],
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []

    def load(dataset_id: str, config: str | None, *, split: str, streaming: bool) -> Iterator[Mapping[str, Any]]:
        made.append((dataset_id, config, split, streaming))
        return iter(ROWS[dataset_id])

    monkeypatch.setattr(hub, "_load_dataset", lambda: load)
    return made


@pytest.mark.parametrize("dataset_id", ROWS)
def test_each_set_gives_whole_tasks(dataset_id: str, calls: list[tuple[Any, ...]]) -> None:
    for task in load_hub(dataset_id):
        assert task.task_id.startswith(dataset_id)
        assert task.instruction
        assert task.reference
        assert bool(task.outline) == (hub.HUB_SETS[dataset_id].env == "MediumDocEditChat")


def test_answers_come_from_the_right_place(calls: list[tuple[Any, ...]]) -> None:
    answers = {i: [t.reference for t in load_hub(i)] for i in ROWS if hub.HUB_SETS[i].env == "MathChat"}
    assert answers == {
        "openai/gsm8k": ["2"],
        "HuggingFaceH4/MATH-500": ["1"],
        "lighteval/MATH-Hard": [r"\frac{1}{2}"],
        "collabllm/collabllm-multiturn-math-hard": ["5", "6"],
    }
    assert next(iter(load_hub("Kamaljp/medium_articles"))).instruction == 'I want to write an article titled "On bees".'


def test_splits_configurations_and_limits_reach_the_loader(calls: list[tuple[Any, ...]]) -> None:
    load_hub("openai/gsm8k", split="test")
    load_hub("HuggingFaceH4/MATH-500")
    tasks = load_hub("collabllm/collabllm-multiturn-math-hard", limit=1)
    assert [t.reference for t in tasks] == ["5"]
    assert calls == [
        ("openai/gsm8k", "main", "test", False),
        ("HuggingFaceH4/MATH-500", None, "test", False),
        ("collabllm/collabllm-multiturn-math-hard", None, "train", True),
    ]
    assert "first-1" in tasks.signature


def test_an_unreachable_hub_ends_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*args: object, **options: object) -> Iterator[Mapping[str, Any]]:
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(hub, "_load_dataset", lambda: load)
    with pytest.raises(DuologueError, match=r"ConnectionError: Couldn't reach.*download the set first.*local file"):
        load_hub("openai/gsm8k")


def test_a_connection_lost_while_streaming_is_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*args: object, **options: object) -> Iterator[Mapping[str, Any]]:
        yield ROWS["openai/gsm8k"][0]
        raise TimeoutError("gone")

    monkeypatch.setattr(hub, "_load_dataset", lambda: load)
    with pytest.raises(DuologueError, match=r"TimeoutError: gone.*download the set first"):
        load_hub("openai/gsm8k", limit=5)


def test_without_datasets_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'duologue\[hub\]'"):
        load_hub("openai/gsm8k")


def test_unknown_set_and_bad_limit() -> None:
    with pytest.raises(DuologueError, match=r"Did you mean 'openai/gsm8k'\?.*load_tasks"):
        load_hub("openai/gsm8")
    with pytest.raises(DuologueError, match="1 or more"):
        load_hub("openai/gsm8k", limit=0)


def test_a_bad_row_is_named(calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "lighteval/MATH-Hard", [{"problem": "p", "solution": "a long proof\nwithout a box"}])
    with pytest.raises(DuologueError, match=r"lighteval/MATH-Hard \(train\), row 0: the solution holds neither"):
        load_hub("lighteval/MATH-Hard")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} then \boxed{\frac{a}{b}} end", r"\frac{a}{b}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\fbox{ 7 }", "7"),
        (r"\boxed{open", None),
        ("no box", None),
    ],
)
def test_boxed(text: str, answer: str | None) -> None:
    assert boxed(text) == answer
