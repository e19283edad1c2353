"""The benchmark of sampling does on both sides the work that it says; how fast anything is, is not tested."""

from collections.abc import Callable
from pathlib import Path

import pytest

from duologue.engines import LoadedModel, TransformersEngine


def test_both_sides_of_the_rollout_part(load: Callable[[], LoadedModel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    from benchmarks import rollout_speed

    monkeypatch.setattr(rollout_speed, "LENGTH", 100)
    batches: list[tuple[int, int]] = []
    generate = TransformersEngine._generate

    def watched(engine: TransformersEngine, prompts: list[list[int]], *rest: object) -> object:
        batches.append((len(prompts), len({tuple(prompt) for prompt in prompts})))
        return generate(engine, prompts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(TransformersEngine, "_generate", watched)
    rollout, groups = rollout_speed.measure(load(), repetitions=1)
    assert len(rollout.shares) == len(groups.shares) == 1
    assert {batch for batch in batches if batch[0] == 32} == {(32, 4), (32, 32)}
    assert (16, 16) in batches
