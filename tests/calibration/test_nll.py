"""The numbers of the report, against values worked out by hand."""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel
from duologue.simulators.calibrated_layout import DECISION, GIVEN, TEXT, HumanTurn, UserRow
from duologue.trainers.calibration_card import nll_table, shown
from duologue.trainers.calibration_nll import (
    change,
    constant_rate,
    estimates,
    growing_nll,
    model_nll,
    ratio,
    unigram_nll,
)
from duologue.trainers.calibration_rows import Prepared, prepare


def two_turns(words: list[HumanTurn], ids: list[int]) -> tuple[UserRow, list[HumanTurn]]:
    """A row of one given token, two of turn 0, one decision and one text token of turn 1."""
    return UserRow(ids, [GIVEN, TEXT, TEXT, DECISION, TEXT], [-1, 0, 0, 1, 1]), words


@pytest.fixture
def prepared() -> Prepared:
    first, said = two_turns([HumanTurn("ab"), HumanTurn("c", "satisfied")], [9, 1, 2, 3, 4])
    second, more = two_turns([HumanTurn("é"), HumanTurn("", "go on")], [9, 1, 1, 3, 4])
    return Prepared(rows=[first, second], humans=[said, more])


def test_estimates_by_hand(prepared: Prepared) -> None:
    nll = [np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 2.0, 5.0])]
    found = estimates(nll, prepared)
    assert found["all"]["value"] == pytest.approx(18 / 8)
    assert found["decision"]["value"] == pytest.approx(5 / 2)
    assert found["text"]["value"] == pytest.approx(13 / 6)
    assert [turn["value"] for turn in found["by_turn"]] == pytest.approx([4 / 4, 14 / 4])
    assert found["per_decision"]["value"] == pytest.approx(5 / 2)
    assert found["bits_per_byte"]["value"] == pytest.approx(13 / math.log(2) / 5)
    assert (found["all"]["n"], found["bits_per_byte"]["n"]) == (8, 5)


def test_unigram_by_hand(prepared: Prepared) -> None:
    found = unigram_nll(prepared.rows[:1], prepared.rows[1:], vocabulary=10)
    expected = [math.log(14 / 2), math.log(14 / 2), math.log(14 / 2), math.log(14 / 2)]  # 4 seen + 10, each once + 1
    assert found[0].tolist() == pytest.approx(expected)
    unseen = UserRow([9, 7, 7, 7, 7], prepared.rows[0].kinds, prepared.rows[0].turns)
    assert unigram_nll(prepared.rows[:1], [unseen], 10)[0].tolist() == pytest.approx([math.log(14)] * 4)


def test_constant_rate_by_hand(prepared: Prepared) -> None:
    first = Prepared(rows=prepared.rows[:1], humans=prepared.humans[:1])
    found = constant_rate(first, prepared)  # one satisfied seen: rates 1/4, 2/4, 1/4
    assert found["value"] == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert found["n"] == 2


def test_model_nll_is_that_of_a_full_forward(
    world: SimpleNamespace, chat: ChatFormat, load: Callable[[], LoadedModel]
) -> None:
    loaded = load()
    rows = prepare(world.people(3), chat, world.PROMPT, 400, drop_long=False).rows
    found = model_nll(loaded.model, rows)
    for row, nats in zip(rows, found, strict=True):
        with torch.no_grad():
            logp = loaded.model(torch.tensor([row.ids])).logits[0, :-1].log_softmax(-1)
        full = -logp.gather(1, torch.tensor(row.ids[1:]).unsqueeze(1)).squeeze(1)
        assert nats.tolist() == pytest.approx(full[torch.tensor(row.mask[1:], dtype=torch.bool)].tolist(), abs=1e-5)


def test_turns_of_a_dialogue_are_read_about_once(load: Callable[[], LoadedModel]) -> None:
    loaded, read = load(), list[int]()
    loaded.model.register_forward_pre_hook(
        lambda _, __, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    ids = list(range(4, 24))
    rows = [UserRow([*ids[:n], 3, 2], [GIVEN] * n + [TEXT, TEXT], [-1] * n + [0, 0]) for n in (6, 11, 17, 17, 9)]
    rows.append(UserRow([5, 3], [GIVEN, TEXT], [-1, 0]))  # another dialogue
    found, shared = growing_nll(loaded.model, rows), [*read]
    plain = model_nll(loaded.model, rows)
    for a, b in zip(found, plain, strict=True):
        assert a.tolist() == pytest.approx(b.tolist(), abs=1e-5)
    assert shared == [8, 7, 8, 3, 3, 2]  # what is new, and the token before the first that is learned
    assert read[len(shared) :] == [8, 13, 19, 19, 11, 2]


def test_intervals_cover_and_are_paired() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        counts = rng.integers(5, 15, size=30)
        found = ratio([float(rng.normal(2.0, 1.0, n).sum()) for n in counts], counts.tolist())
        assert found["low"] < found["value"] < found["high"]  # type: ignore[operator]
        hits += found["low"] < 2.0 < found["high"]  # type: ignore[operator]
    assert 50 <= hits <= 60
    before = [rng.normal(50 * i, 1.0, 10) for i in range(20)]
    paired = change(before, [x - 0.5 for x in before])
    assert (paired["value"], paired["low"], paired["high"]) == pytest.approx((-0.5, -0.5, -0.5))


def test_too_little_data_has_no_interval() -> None:
    assert ratio([], []) == {"value": None, "low": None, "high": None, "n": 0}
    assert ratio([3.0, 0.0], [2, 0]) == {"value": 1.5, "low": None, "high": None, "n": 2}
    assert shown(ratio([], [])) == "-"
    assert shown(ratio([3.0], [2])) == "1.500"


def test_the_table_names_each_number(prepared: Prepared) -> None:
    nll = [np.ones(4), np.ones(4)]
    numbers = estimates(nll, prepared)
    metrics = {"before": numbers, "after": numbers, "unigram": numbers}
    table = nll_table({**metrics, "constant_rate": {"per_decision": constant_rate(prepared, prepared)}})
    assert table[0] == ["NLL per token", *["1.000 [1.000, 1.000]"] * 3]
    assert table[3][3].startswith("0.916 [")  # two of three decisions seen: rates 2/5, 2/5, 1/5
