"""Keys and values kept over turns: the same samples as without, and never those of other weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import PreTrainedModel

from duologue.engines import Completion, Sampling, TransformersEngine
from duologue.engines.prefix_cache import PrefixCache

PAD = 0
SAMPLING = Sampling(max_new_tokens=6)
STOPS = list(range(15, 60))
DEPRECATED_IN_PEFT = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")

Tiny = Callable[[str], PreTrainedModel]
Rows = list[list[int]]


class Uncached(TransformersEngine):
    """The reference: forgets everything before each call."""

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        self.flush()
        return super().generate(prompts, sampling, stop_ids, seeds)


def test_a_dialogue_that_goes_on_otherwise_shares_its_beginning(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a user is replayed at people's histories: the prompt returns, and not what was sampled after it."""
    monkeypatch.setattr("duologue.engines.prefix_cache._SHARED", 8)
    model = tiny("llama")
    engine, plain = TransformersEngine(model, PAD), Uncached(model, PAD)
    columns = count_columns(engine, monkeypatch)
    rows = [random_rows(1, 12, seed)[0] + random_rows(1, 12, seed + 9)[0] for seed in range(5)]
    rows = [row for row in rows if len(row) > 9]
    for turn in range(3):
        done = engine.generate(rows, SAMPLING, STOPS, range(len(rows)))
        same_samples(done, plain.generate(rows, SAMPLING, STOPS, range(len(rows))))
        rows = [[*row, (c.token_ids[0] + 1) % 300, 7] for row, c in zip(rows, done, strict=True)]
        assert columns[-1][0] == (max(map(len, rows)) - 2 if turn == 0 else 2)
    other = [[row[0] + 1, *row[1:]] for row in rows]  # nothing in common
    same_samples(
        engine.generate(other, SAMPLING, STOPS, range(9)[: len(other)]),
        plain.generate(other, SAMPLING, STOPS, range(9)[: len(other)]),
    )
    assert columns[-1][0] == columns[-1][1]


def random_rows(n: int, longest: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    return [rng.integers(15, 320, size=rng.integers(1, longest + 1)).tolist() for _ in range(n)]


def same_samples(a: Sequence[Completion], b: Sequence[Completion]) -> None:
    assert [c.token_ids for c in a] == [c.token_ids for c in b]
    for one, other in zip(a, b, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def count_columns(engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record (columns to compute, columns in all) of each batch that is laid out."""
    seen: list[tuple[int, int]] = []
    lay_out = engine._cache.lay_out

    def counted(prompts: Sequence[Sequence[int]]) -> Any:
        batch = lay_out(prompts)
        seen.append((batch.new_columns, batch.input_ids.shape[1]))
        return batch

    monkeypatch.setattr(engine._cache, "lay_out", counted)
    return seen


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
@pytest.mark.parametrize("batch_size", [3, 64])
def test_many_turns_equal_those_without_a_cache(
    tiny: Tiny, family: str, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dialogues go on, end and begin over five turns; one row stays as it is, one loses its last token."""
    model = tiny(family)
    engine = TransformersEngine(model, PAD, batch_size=batch_size)
    plain = Uncached(model, PAD, batch_size=batch_size)
    columns = count_columns(engine, monkeypatch)
    rows = random_rows(7, 15, seed=0)
    for turn in range(5):
        seeds = list(range(100 * turn, 100 * turn + len(rows)))
        done = engine.generate(rows, SAMPLING, STOPS, seeds)
        same_samples(done, plain.generate(rows, SAMPLING, STOPS, seeds))
        if turn == 0:
            assert {c.finish for c in done} == {"stop", "length"}  # rows left the batch at different steps
        suffixes = random_rows(len(rows), 4, seed=turn + 1)
        longer = [[*row, *c.token_ids, *new] for row, c, new in zip(rows, done, suffixes, strict=True)]
        rows = [*longer[1:-2], rows[-1], longer[-2][: len(rows[-2]) + 1], *random_rows(2, 9, seed=turn + 50)]
    reused = any(new < width for new, width in columns)
    assert reused == (family != "gemma3")  # a sliding window would count the gaps


def test_no_row_shares_more_than_the_one_found(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.engines.prefix_cache._SHARED", 1)
    cache = PrefixCache(tiny("llama"), PAD)
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = [tuple(rng.integers(0, 2, size=rng.integers(1, 9)).tolist()) for _ in range(6)]
        cache._rows = {row: [] for row in rows[1:]}
        prompt = rows[0]
        (row, length), *_ = cache._longest_prefixes([prompt])
        assert length < len(prompt)
        assert row[:length] == prompt[:length]
        whole = max((len(r) for r in cache._rows if len(r) < len(prompt) and prompt[: len(r)] == r), default=0)
        parts = max(n for r in cache._rows for n in range(len(prompt)) if r[:n] == prompt[:n])
        assert length == (whole or (parts if len(prompt) > 1 else 0))


def test_only_what_is_new_is_computed(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = TransformersEngine(tiny("llama"), PAD)
    columns = count_columns(engine, monkeypatch)
    rows = [list(range(20, 50)), list(range(60, 70))]
    done = engine.generate(rows, SAMPLING, [], [0, 1])
    rows = [[*row, *c.token_ids, 15, 16] for row, c in zip(rows, done, strict=True)]
    engine.generate(rows, SAMPLING, [], [2, 3])
    assert columns == [(30, 30), (3, 38)]  # the last sampled token had no keys yet


def test_rows_with_one_prompt_keep_apart(tiny: Tiny) -> None:
    """A group samples one prompt many times; the rows differ only by what was sampled."""
    model = tiny("llama")
    engine, plain = TransformersEngine(model, PAD), Uncached(model, PAD)
    prompt = list(range(20, 30))
    done = engine.generate([prompt] * 4, SAMPLING, [], range(4))
    rows = [[*prompt, *c.token_ids, 15] for c in done]
    same_samples(engine.generate(rows, SAMPLING, [], range(4)), plain.generate(rows, SAMPLING, [], range(4)))


Change = Callable[[PreTrainedModel], object]


def fit(model: PreTrainedModel, **kind: bool) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, **kind)  # type: ignore[arg-type]
    ids = torch.tensor([[20, 21, 22, 23]])
    model(ids, labels=ids).loss.backward()
    optimizer.step()


def halve(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value / 2 for name, value in state.items()}


@torch.no_grad()
def one_bias(model: PreTrainedModel) -> None:
    model.model.layers[0].self_attn.k_proj.weight[3, 20] += 5.0


def write_data(model: PreTrainedModel) -> None:
    for parameter in model.parameters():
        parameter.data.copy_(parameter.data / 2)


def replace_data(model: PreTrainedModel) -> None:
    for parameter in model.parameters():
        parameter.data = parameter.data / 2


CHANGES: dict[str, Change] = {
    "optimizer": fit,
    "fused optimizer": lambda model: fit(model, fused=True),  # the default of transformers.Trainer
    "load_state_dict": lambda model: model.load_state_dict(halve(model.state_dict())),
    "load_state_dict, assigned": lambda model: model.load_state_dict(halve(model.state_dict()), assign=True),
    "one weight": one_bias,
    "through .data": write_data,
    "new .data": replace_data,
}


def second_turn_is_right_after(
    model: PreTrainedModel, change: Callable[[TransformersEngine], object], moves: bool = True
) -> None:
    """Sample a turn, change the weights, sample the next: as an engine without a cache does."""
    engine = TransformersEngine(model, PAD)
    rows = random_rows(3, 12, seed=4)
    done = engine.generate(rows, SAMPLING, [], range(3))
    rows = [[*row, *c.token_ids, 15] for row, c in zip(rows, done, strict=True)]
    before = Uncached(model, PAD).generate(rows, SAMPLING, [], range(3))
    change(engine)
    after = Uncached(model, PAD).generate(rows, SAMPLING, [], range(3))
    if moves:
        assert all(a.logprobs != pytest.approx(b.logprobs, abs=1e-3) for a, b in zip(after, before, strict=True))
    same_samples(engine.generate(rows, SAMPLING, [], range(3)), after)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_no_keys_of_other_weights(tiny: Tiny, change: Change) -> None:
    model = tiny("llama")
    second_turn_is_right_after(model, lambda _: change(model))


def adapted(model: PreTrainedModel) -> Any:
    config = LoraConfig(r=2, target_modules=["q_proj", "k_proj", "v_proj"], init_lora_weights=False)
    return get_peft_model(model, config)


@DEPRECATED_IN_PEFT
def test_no_keys_of_another_adapter_state(tiny: Tiny) -> None:
    model = adapted(tiny("llama"))
    second_turn_is_right_after(model, lambda _: model.base_model.disable_adapter_layers())
    second_turn_is_right_after(model, lambda _: model.base_model.enable_adapter_layers())
    model.add_adapter("other", LoraConfig(r=2, target_modules=["v_proj"], init_lora_weights=False))
    second_turn_is_right_after(model, lambda _: model.set_adapter("other"))
    second_turn_is_right_after(model, lambda _: model.merge_adapter(), moves=False)


@DEPRECATED_IN_PEFT
def test_no_keys_of_older_adapter_weights(tiny: Tiny) -> None:
    model = adapted(tiny("llama"))
    weights = [p for name, p in model.named_parameters() if "lora_B" in name]

    def train(_: object) -> None:
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        torch.optim.AdamW(weights, lr=0.3, fused=True).step()

    second_turn_is_right_after(model, train)


def unseen_write(model: PreTrainedModel) -> None:
    """Change a weight so that neither its version nor the values looked at tell."""
    model.model.layers[0].self_attn.v_proj.weight.data[5:] *= 3


@pytest.mark.parametrize("remedy", ["version", "flush"])
def test_a_new_version_and_flush_forget_all(tiny: Tiny, remedy: str) -> None:
    model = tiny("llama")

    def change(engine: TransformersEngine) -> None:
        unseen_write(model)
        if remedy == "flush":
            engine.flush()
        else:
            engine.version = 0  # also the same number

    second_turn_is_right_after(model, change)


def test_rows_live_for_one_call(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last call did not sample is gone: memory is bounded by one call's rows."""
    engine = TransformersEngine(tiny("llama"), PAD)
    columns = count_columns(engine, monkeypatch)
    row = list(range(20, 40))
    done = engine.generate([row], SAMPLING, [], [0])[0]
    engine.generate([[5, 6]], SAMPLING, [], [1])
    engine.generate([[*row, *done.token_ids, 15]], SAMPLING, [], [2])
    assert columns[-1] == (27, 27)
    assert len(engine._cache._fresh) == 1


def test_layout_pads_both_parts_on_the_left(tiny: Tiny) -> None:
    model = tiny("llama")
    cache = PrefixCache(model, PAD)
    keys = [(torch.full((2, n, 8), float(n)),) * 2 for n in (3, 1)]
    cache._rows = {(5, 6, 7): [keys[0]] * 2, (5,): [keys[1]] * 2}
    batch = cache.lay_out([[5, 6, 7, 8], [5, 9, 9], [4]])
    assert batch.input_ids.tolist() == [[5, 6, 7, 0, 8], [0, 0, 5, 9, 9], [0, 0, 0, 0, 4]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 1]]
    assert batch.new_columns == 2
    assert batch.past is not None
    layer: Any = batch.past.layers[1]
    assert layer.keys[:, 0, :, 0].tolist() == [[3, 3, 3], [0, 0, 1], [0, 0, 0]]
