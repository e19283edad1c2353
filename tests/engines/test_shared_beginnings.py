"""What prompts of one call share is computed once: the cheapest cut, the same samples, and nothing kept of it."""

from collections.abc import Callable, Sequence
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


def prefix(run: Sequence[Sequence[int]]) -> int:
    """Return with how many equal tokens all rows begin."""
    return next((n for n, tokens in enumerate(zip(*run, strict=False)) if len({*tokens}) > 1), min(map(len, run)))


def saved(rows: Sequence[Sequence[int]], least: int) -> int:
    """Return the most that any cut of the sorted rows into runs saves, by trying all."""
    ordered = sorted(map(tuple, rows))
    best = 0
    for parts in range(len(ordered)):
        for cuts in combinations(range(1, len(ordered)), parts):
            edges = [0, *cuts, len(ordered)]
            runs = [ordered[a:b] for a, b in pairwise(edges)]
            shared = [min(prefix(run), min(map(len, run)) - 1) for run in runs]
            best = max(best, sum((len(run) - 1) * n for run, n in zip(runs, shared, strict=True) if n >= least))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_no_other_cut_saves_more(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("duologue.engines.shared_beginnings._LEAST", 2)
    monkeypatch.setattr("duologue.engines.shared_beginnings._PAYS_BELOW", 9.0)
    rng = np.random.default_rng(seed)
    rows: Rows = [rng.integers(0, 2, size=rng.integers(1, 9)).tolist() for _ in range(7)]
    found = shared_beginnings(rows)
    assert len(set(found)) == len(found)
    users = {b: [r for r in rows if tuple(r[: len(b)]) == b and len(r) > len(b)] for b in found}
    assert all(len(of) > 1 for of in users.values())
    longest = {tuple(r): max((b for b in found if r in users[b]), key=len, default=()) for r in rows}
    computed = sum(map(len, found)) + sum(len(r) - len(longest[tuple(r)]) for r in rows)
    assert sum(map(len, rows)) - computed >= saved(rows, least=2)


def test_beginnings_that_do_not_pay_are_left() -> None:
    group = [row(0, 100)] * 4
    assert shared_beginnings(group) == [tuple(group[0][:99])]
    assert shared_beginnings([*group, row(1, 100)]) == []  # a batch is as wide as its widest row
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
