"""The formulas, worked out by hand and by their properties."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.analysis.plan.lengths import Lengths, expected, longest
from duologue.analysis.plan.memory import Batch, activation_bytes, kept_rows, logit_bytes, training_memory
from duologue.analysis.plan.shape import Machine, Shape, bytes_per_number
from duologue.analysis.plan.work import best_split, exchange_bytes, step_flops, sync_bytes, training_flops
from duologue.errors import DuologueError
from duologue.types import Episode, Span, StopReason

FULL = Shape(1000, 1000, layers=2, hidden=10, kv_heads=1, head_size=5, vocabulary=50, inner=30)
LORA = Shape(1000, 100, layers=2, hidden=10, kv_heads=1, head_size=5, vocabulary=50, inner=30)
ONE = Lengths(dialogues=6, group_size=3, turns=3, opening=20, said=10, heard=5)


def played(mask: tuple[int, ...], opening: int, spans: tuple[tuple[int, int], ...]) -> Episode:
    return Episode(
        "E",
        "t",
        0,
        (),
        StopReason.TURN_LIMIT,
        1.0,
        prompt_ids=(1,) * opening,
        completion_ids=(1,) * len(mask),
        completion_mask=mask,
        logprobs=(0.0,) * len(mask),
        spans=tuple(Span(start, end, 0) for start, end in spans),
    )


def test_tokens_of_a_dialogue_by_hand() -> None:
    assert (ONE.sampled, ONE.user, ONE.total) == (30, 30, 60)
    assert ONE.prefill_plain == 20 + 35 + 50
    assert ONE.prefill_cached == 20 + 6 + 6
    assert ONE.prefill_shared == pytest.approx(20 / 3 + 6 + 6)


@given(turns=st.integers(1, 20), per_turn=st.integers(1, 500), total=st.integers(500, 9000), size=st.integers(2, 16))
def test_limits_are_used_up_and_a_cache_never_costs(turns: int, per_turn: int, total: int, size: int) -> None:
    one = longest(size, size, turns, per_turn, total)
    assert one.total == pytest.approx(total)
    assert one.sampled == pytest.approx(min(turns * per_turn, total))
    assert one.prefill_shared <= one.prefill_cached
    assert one.prefill_cached <= one.prefill_plain + turns


def test_expected_lengths_are_means_over_dialogues() -> None:
    two = played((1, 1, 0, 0, 0, 1), 4, ((0, 2), (5, 6)))
    one = played((1, 1, 1), 8, ((0, 3),))
    broken = played((), 5, ())
    found = expected(8, 4, [two, one, broken])
    assert (found.turns, found.opening, found.said, found.heard) == (1.5, 6, 2, 3)
    assert found.total == (10 + 11) / 2
    with pytest.raises(DuologueError, match=r"No episode has tokens .* Give episodes.jsonl"):
        expected(8, 4, [broken])


def test_training_costs_by_hand() -> None:
    assert training_flops(FULL, 7, checkpoints=False) == 6 * 1000 * 7
    assert training_flops(LORA, 7, checkpoints=False) == (4 * 1000 + 6 * 100) * 7
    assert training_flops(LORA, 7, checkpoints=True) == (6 * 1000 + 6 * 100) * 7
    flops = step_flops(FULL, LORA, ONE, checkpoints=False)
    assert flops.prefill == 2 * 1000 * 6 * 32
    assert flops.decode == 2 * 1000 * 6 * 30
    assert (flops.user_prefill, flops.user_decode) == (2 * 1000 * 6 * 30, 2 * 1000 * 6 * 30)
    seconds = flops.seconds(Machine(0, 1, 1e-6, training_utilisation=0.5, generation_utilisation=0.1))
    assert seconds.training == pytest.approx(6 * 1000 * 6 * 60 / 5e5)
    assert seconds.decode == pytest.approx(2 * 1000 * 6 * 30 / 1e5)
    assert flops.times(3).decode == 3 * flops.decode


def test_memory_by_hand() -> None:
    batch = Batch(tokens=100, positions=40, gpu=False)
    norm = (4 + 2 * 4) * 10
    layer = 2 * norm + 4 * (2 * 10 + 2 * 5 + 4 * 30)
    assert activation_bytes(FULL, batch, 4) == 100 * (2 * layer + norm)
    assert activation_bytes(FULL, Batch(100, 40, gpu=True), 4) == 100 * (2 * 10 * 4 + layer + norm)
    assert logit_bytes(FULL, batch) == 2 * 4 * 40 * 50
    assert (kept_rows(10), kept_rows(100)) == (30, 264)
    whole, sharded = (training_memory(LORA, batch, 2, shards=s, shard_weights=s > 1) for s in (1, 4))
    assert (whole.weights, whole.gradients, whole.optimiser) == (2 * 1000 + 4 * 100, 400, 800)
    assert (sharded.weights, sharded.optimiser) == (whole.weights / 4, whole.optimiser / 4)
    assert sharded.activations == whole.activations


def test_logits_of_a_gpu_are_a_tile() -> None:
    wide = Shape(1e9, 1e9, 2, 10, 1, 5, vocabulary=262_208)
    assert logit_bytes(wide, Batch(9e9, 9e9, gpu=True)) == 2 * 4 * 4096 * 32768
    assert logit_bytes(wide, Batch(10, 10, gpu=True)) == 2 * 4 * 10 * 32768
    assert wide.width_inside == 40


def test_network_by_hand() -> None:
    assert (sync_bytes(LORA, 2), sync_bytes(FULL, 2)) == (400, 2000)
    assert exchange_bytes(LORA, 2, gpus=4, passes=3, shard_weights=False) == 2 * 0.75 * 400
    assert exchange_bytes(FULL, 2, gpus=4, passes=3, shard_weights=True) == 3 * 0.75 * 3 * 2000
    assert exchange_bytes(FULL, 2, gpus=1, passes=3, shard_weights=True) == 0


@given(rollout=st.floats(0.01, 100), training=st.floats(0.01, 100), gpus=st.integers(2, 64))
def test_no_other_split_is_faster(rollout: float, training: float, gpus: int) -> None:
    def step(playing: int) -> float:
        return max(rollout / playing, training / (gpus - playing))

    best = best_split(rollout, training, gpus)
    assert 1 <= best < gpus
    assert all(step(best) <= step(other) for other in range(1, gpus))


@pytest.mark.parametrize(
    ("dtype", "gpus", "width"), [("float32", 8, 4), ("bfloat16", 0, 2), ("auto", 0, 4), ("auto", 1, 2)]
)
def test_bytes_of_a_weight(dtype: str, gpus: int, width: int) -> None:
    assert bytes_per_number(dtype, Machine(gpus, 80, 100)) == width


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gpus": -1}, "gpus is -1"),
        ({"tflops": 0}, "tflops is 0"),
        ({"memory_gb": float("nan")}, "memory_gb is nan"),
        ({"training_utilisation": 1.5}, "training_utilisation is 1.5"),
    ],
)
def test_no_such_machine(values: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        Machine(**{"gpus": 1, "memory_gb": 80, "tflops": 100, **values})


def test_no_such_model() -> None:
    with pytest.raises(DuologueError, match="more than parameters"):
        Shape(10, 11, 1, 1, 1, 1, 1)
    with pytest.raises(DuologueError, match="layers of a model is 0"):
        Shape(10, 10, 0, 1, 1, 1, 1)
