from collections.abc import Sequence
from pathlib import Path

import pytest

from duologue.envs.tasks import (
    DocumentTasks,
    MathTasks,
    TaskList,
    check_tasks,
    document_gold_reply,
    gold_reply,
    load_articles,
    load_gsm8k,
    load_sharded_gsm8k,
    math_gold_reply,
)
from duologue.errors import DuologueError
from duologue.rewards import BleuReward, ExactMatch
from duologue.rewards.base import Reward
from duologue.types import Dialogue, Task


def exact(dialogues: Sequence[Dialogue]) -> list[float | None]:
    """Score 1 for the gold reply, word for word."""
    return [float(d.said_by("assistant")[-1] == gold_reply(d.task)) for d in dialogues]


def one(task: Task) -> TaskList:
    return TaskList([task])


def always(value: float | None) -> Reward:
    def reward(dialogues: Sequence[Dialogue], /) -> list[float | None]:
        return [value for _ in dialogues]

    return reward


class Broken(TaskList):
    def find(self, task_id: str) -> Task:
        return Task(task_id, "another", "one")


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_generated_problems_pass_with_the_real_reward(level: int) -> None:
    assert check_tasks(MathTasks(level), ExactMatch(), n=50) == 50


def test_every_embedded_document_passes_with_the_real_reward() -> None:
    for split in ("train", "test"):
        documents = DocumentTasks(None, split)
        assert check_tasks(documents, BleuReward(), n=1000) == len(documents)


def test_gold_replies() -> None:
    math, document = Task("a", "i", "7"), Task("b", "i", "text", outline=("point",))
    assert gold_reply(math) == math_gold_reply(math) == "Answer: 7"
    assert gold_reply(document) == document_gold_reply(document) == "<document>text</document>"


def test_the_dialogue_is_over_and_alternates() -> None:
    seen: list[Dialogue] = []

    def reward(dialogues: Sequence[Dialogue]) -> list[float | None]:
        seen.extend(dialogues)
        return exact(dialogues)

    check_tasks(one(Task("a", "i", "7")), reward)
    assert [[m["role"] for m in d.messages] for d in seen] == [["user", "assistant"]] * 2
    assert all(d.stop is not None and d.stop.is_terminal for d in seen)


def test_a_wrong_wrapping_is_named_with_the_scores() -> None:
    with pytest.raises(DuologueError, match=r"a do not score 1 for the gold answer \(scores: \[0.0\]\).*gold_reply"):
        check_tasks(one(Task("a", "i", "7")), exact, gold_reply=document_gold_reply)


def test_credit_for_nothing_is_refused() -> None:
    with pytest.raises(DuologueError, match=r"score 0 for the empty answer \(scores: \[1.0\]\)"):
        check_tasks(one(Task("a", "i", "7")), always(1.0))


def test_not_scored_is_not_a_pass() -> None:
    with pytest.raises(DuologueError, match=r"not scored \(None\) for the gold.*\n.*not scored \(None\) for the empty"):
        check_tasks(one(Task("a", "i", "7")), always(None))


def test_nan_is_not_a_pass() -> None:
    with pytest.raises(DuologueError, match="nan"):
        check_tasks(one(Task("a", "i", "7")), always(float("nan")))


def test_too_few_scores() -> None:
    with pytest.raises(DuologueError, match=r"0 scores for 1 dialogues.*Return one each"):
        check_tasks(one(Task("a", "i", "7")), lambda dialogues: [])


def test_faults_of_the_tasks_themselves() -> None:
    with pytest.raises(DuologueError, match="empty instruction"):
        check_tasks(one(Task("a", " ", "7")), exact)
    with pytest.raises(DuologueError, match="give a fact away"):
        check_tasks(one(Task("a", "Tom has 7. How many?", "7", facts=("Tom has 7.",))), exact)
    with pytest.raises(DuologueError, match=r"not what find\(task_id\) returns"):
        check_tasks(Broken([Task("a", "i", "7")]), exact)


def test_repeated_ids_and_long_lists_are_shortened() -> None:
    class Same(TaskList):
        def __iter__(self):  # type: ignore[no-untyped-def]
            return iter([Task("a", "i", "7")] * 3)

    with pytest.raises(DuologueError, match="- a share an id"):
        check_tasks(Same([Task("a", "i", "7")]), exact)
    many = TaskList([Task(f"t{i}", "", "7") for i in range(9)])
    with pytest.raises(DuologueError, match="and 4 more have an empty instruction"):
        check_tasks(many, exact)


def test_nothing_to_check() -> None:
    with pytest.raises(DuologueError, match="1 or more"):
        check_tasks(MathTasks(), exact, n=0)


def test_real_files_pass_with_the_real_rewards(shared: Path) -> None:
    assert check_tasks(load_gsm8k(shared / "gsm8k" / "train.jsonl"), ExactMatch(), n=300) == 300
    assert (
        check_tasks(load_sharded_gsm8k(shared / "sharded_gsm8k" / "sharded_gsm8k_v2.json"), ExactMatch(), n=999) == 698
    )
    assert check_tasks(load_articles(shared / "articles_18f" / "posts_300_1000.jsonl"), BleuReward(), n=40) == 40
