from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from duologue.envs.tasks import NoticeTasks, check_tasks, make_tasks
from duologue.envs.tasks.notice_families import FAMILIES, Family
from duologue.errors import DuologueError
from duologue.rewards import BleuReward
from duologue.simulators import make_simulator
from duologue.simulators._text import content_words
from duologue.simulators.scripted_document import ScriptedDocumentUser, coverage, missing_points
from duologue.types import Act, Dialogue, StopReason, Task

SPLITS = ("train", "validation", "test")
Notices = Callable[..., list[Task]]


@pytest.mark.parametrize("split", SPLITS)
def test_gold_scores_1_and_ids_are_found_again(split: str) -> None:
    assert check_tasks(NoticeTasks(split), BleuReward(), n=120) == 120


def test_notices_are_short(notices: Notices) -> None:
    assert {len(task.reference.split()) for task in notices(600)} <= set(range(25, 46))


def test_golden(notices: Notices) -> None:
    task = notices(1)[0]
    assert task.task_id == "notice-meeting-train-0000000"
    assert task.instruction == "I need a notice about the next meeting of the hiking club."
    assert task.facts[0] == "The date is Saturday 8 May."
    assert task.outline == task.facts


def test_splits_share_no_notice_but_all_kinds(notices: Notices) -> None:
    texts = {split: {task.reference for task in notices(1200, split)} for split in SPLITS}
    kinds = {split: {task.metadata["kind"] for task in notices(60, split)} for split in SPLITS}
    assert not texts["train"] & (texts["validation"] | texts["test"])
    assert not texts["validation"] & texts["test"]
    assert kinds["train"] == kinds["validation"] == kinds["test"] == {family.name for family in FAMILIES}


def test_draws_depend_on_the_generator_alone_and_spread_over_kinds() -> None:
    draws = [NoticeTasks().draw(rng) for rng in (np.random.default_rng(7), np.random.default_rng(7))]
    assert draws[0] == draws[1]
    rng = np.random.default_rng(0)
    counts = Counter(NoticeTasks().draw(rng).metadata["kind"] for _ in range(600))
    assert min(counts.values()) > 60


def test_one_task_is_the_same_in_every_source_that_has_it() -> None:
    task = next(iter(NoticeTasks("test", ["sale"])))
    assert NoticeTasks("test").find(task.task_id) == task
    assert NoticeTasks("test", ["sale"]).signature != NoticeTasks("test").signature


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_fact_shares_only_its_value_with_the_notice(family: Family) -> None:
    blanks = {slot.name: slot.blank for slot in family.slots}
    for topic in family.topics:
        frame = content_words(family.text.format(topic=topic, **blanks))
        for slot in family.slots:
            assert not content_words(slot.fact.format("")) & frame, slot.name


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_values_are_many_and_can_be_read_back(family: Family) -> None:
    for values in (family.topics, *(slot.values for slot in family.slots)):
        assert len(set(values)) == len(values) >= 12
        assert not [value for value in values if "." in value or "{" in value]


def test_a_draft_makes_exactly_the_facts_whose_values_it_has(notices: Notices) -> None:
    for task in notices(120):
        family = next(f for f in FAMILIES if f.name == task.metadata["kind"])
        for i, slot in enumerate(family.slots):
            value = next(v for v in slot.values if slot.fact.format(v) == task.facts[i])
            draft = task.reference.replace(value, slot.blank)
            assert missing_points(task, draft) == [i]
            assert coverage(task, draft) == pytest.approx(0.8)


def test_the_scripted_user_accepts_the_notice_and_names_what_another_lacks(notices: Notices) -> None:
    user = ScriptedDocumentUser()
    for seed, task in enumerate(notices(12)):
        asked = Dialogue(task, seed).then("user", task.instruction)
        full = user.respond([asked.then("assistant", f"<document>{task.reference}</document>")])[0]
        assert full.stop is StopReason.USER_SATISFIED
        empty = user.respond([asked.then("assistant", "<document>Some notice, on some day soon.</document>")])[0]
        if empty.stop is None:
            assert Act.REJECT in empty.acts
            assert any(fact.lower()[1:] in empty.text.lower() for fact in task.facts)


def test_asking_brings_out_every_fact(notices: Notices) -> None:
    user = make_simulator("scripted", env="MediumDocEditChat")
    for seed, task in enumerate(notices(12)):
        dialogue = Dialogue(task, seed).then("user", task.instruction)
        for _ in range(6):
            dialogue = dialogue.then("assistant", "What else should it say?")
            dialogue = dialogue.then("user", user.respond([dialogue])[0].text)
        said = " ".join(dialogue.said_by("user")).lower()
        assert sum(fact.lower()[1:] in said for fact in task.facts) >= 4  # some users are confused now and then


def test_specs() -> None:
    made = make_tasks("notices:split=test,families=lost+sale", "MediumDocEditChat")
    assert isinstance(made, NoticeTasks)
    assert made.signature.startswith("notices(families=lost+sale,split=test,sha256=")
    assert make_tasks("notices", "MediumDocEditChat") is not None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("notices:split=tset", r"no notice split 'tset'. Did you mean 'test'\?"),
        ("notices:families=lost+sell", r"no kind of notice 'sell'.*'sale'"),
        ("notices:family=lost", r"Did you mean 'families'\?"),
    ],
)
def test_specs_that_name_nothing(spec: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        make_tasks(spec, "MediumDocEditChat")


def test_notices_are_for_documents() -> None:
    with pytest.raises(DuologueError, match="are for MediumDocEditChat"):
        make_tasks("notices:split=test")


@pytest.mark.parametrize("task_id", ["notice-lost-train-0000001", "notice-sale-test-1", "doc-short-001"])
def test_ids_of_others(task_id: str) -> None:
    with pytest.raises(DuologueError, match="Ids look like 'notice-sale-test-0000000'"):
        NoticeTasks("test", ["sale"]).find(task_id)


def test_no_kinds() -> None:
    with pytest.raises(DuologueError, match="leave families out"):
        NoticeTasks(families=[])
