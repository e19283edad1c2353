"""What prompts of one call share is computed once: the fewest positions, the same samples, and nothing kept of it."""

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import pytest
from transformers import PreTrainedModel

from duologue.engines import Sampling, TransformersEngine
from duologue.engines.shared_beginnings import shared_beginnings

from .test_prefix_cache import PAD, count_columns, same_samples

Tiny = Callable[[str], PreTrainedModel]
Rows = list[list[int]]


def row(seed: int, length: int) -> list[int]:
    return np.random.default_rng(seed).integers(15, 320, size=length).tolist()  # type: ignore[no-any-return]


def fewest(rows: list[tuple[int, ...]], left: int) -> int:
    """Return how many beginnings leave at most so many tokens of each sorted row, by trying all cuts into runs."""
    least = len(rows)
    for parts in range(len(rows)):
        for cuts in combinations(range(1, len(rows)), parts):
            runs = [rows[a:b] for a, b in pairwise([0, *cuts, len(rows)])]
            needy = [run for r in runs if (run := [row for row in r if len(row) > left])]
            needs = [max(map(len, run)) - left for run in needy]
            if all(
                len({r[:n] for r in run}) == 1 and len(min(run, key=len)) > n
                for run, n in zip(needy, needs, strict=True)
            ):
                least = min(least, len(needy))
    return least


@pytest.mark.parametrize("seed", range(60))
def test_no_other_choice_leaves_fewer_positions(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("duologue.engines.shared_beginnings._LEAST", 1)
    monkeypatch.setattr("duologue.engines.shared_beginnings._PAYS_BELOW", 1.0)
    rng = np.random.default_rng(seed)
    rows = sorted(tuple(rng.integers(0, 2, size=rng.integers(1, 9)).tolist()) for _ in range(6))
    longest = max(map(len, rows))
    found = shared_beginnings(rows)
    rest = [len(r) - max((len(b) for b in found if r[: len(b)] == b and len(r) > len(b)), default=0) for r in rows]
    positions = len(found) * max(map(len, found), default=0) + len(rows) * max(rest)
    choices = [fewest(rows, left) * (longest - left) + len(rows) * left for left in range(1, longest + 1)]
    assert positions == min(choices)


def test_beginnings_that_do_not_pay_are_left() -> None:
    group = [row(0, 100)] * 4
    assert shared_beginnings(group) == [tuple(group[0][:99])]
    assert shared_beginnings([*group, row(1, 100)]) == sorted([tuple(group[0][:99]), tuple(row(1, 100)[:99])])
    assert shared_beginnings([*group[:2], row(1, 100), row(2, 100)]) == []  # 3 * 99 + 4 * 1 of 4 * 100
    assert shared_beginnings([row(0, 60)] * 4) == []  # short
    assert shared_beginnings([row(seed, 100) for seed in range(4)]) == []  # nothing in common


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
def test_groups_are_computed_once_and_sample_as_before(
    tiny: Tiny, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks with four dialogues each, then their second turn, which goes on with what was sampled."""
    engine, plain = (TransformersEngine(tiny(family), PAD) for _ in range(2))
    monkeypatch.setattr(plain._cache, "shared", lambda prompts: [])
    columns = count_columns(engine, monkeypatch)
    sampling = Sampling(max_new_tokens=6)
    rows = [[*row(task, 80), *row(100 + i, i)] for task in (0, 1) for i in (0, 0, 2, 3)]
    for turn in range(2):
        done = engine.generate(rows, sampling, [], range(8))
        same_samples(done, plain.generate(rows, sampling, [], range(8)))
        rows = [[*r, *c.token_ids, 15 + turn] for r, c in zip(rows, done, strict=True)]
    if family == "gemma3":
        assert all(new == width for new, width in columns)  # a sliding window would count the gaps
    else:
        assert columns == [(79, 79), (4, 83), (2, 90)]


def test_lent_beginnings_are_gone_after_the_call(tiny: Tiny) -> None:
    engine = TransformersEngine(tiny("llama"), PAD)
    prompt = row(0, 80)
    done = engine.generate([prompt] * 4, Sampling(max_new_tokens=3), [], range(4))
    engine._cache.open()
    assert {*engine._cache._rows} == {(*prompt, *c.token_ids[:-1]) for c in done}
