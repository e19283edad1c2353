"""The in-process engine against ``model.generate``, full forwards and known distributions."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

import duologue.engines.hf as hf
from duologue.engines import Completion, Sampling, TransformersEngine
from duologue.errors import DuologueError

FAMILIES = ["llama", "qwen3", "gemma3"]
GREEDY = Sampling(max_new_tokens=12, temperature=0)
PAD = 0

Tiny = Callable[[str], PreTrainedModel]


@torch.no_grad()
def reference_logprobs(model: PreTrainedModel, prompt: Sequence[int], completion: Completion, t: float) -> list[float]:
    """Score one completion by one forward over one unpadded row."""
    ids = [*prompt, *completion.token_ids]
    logp = torch.log_softmax(model(torch.tensor([ids])).logits[0].float() / t, dim=-1)
    return [float(logp[len(prompt) + i - 1, token]) for i, token in enumerate(completion.token_ids)]


def reference_tokens(model: PreTrainedModel, prompts: list[list[int]], stops: list[int]) -> list[tuple[int, ...]]:
    """Greedy continuations by transformers, left-padded, cut after the first stop token."""
    width = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    out: Any = model.generate(  # type: ignore[operator]
        ids, attention_mask=mask, do_sample=False, max_new_tokens=12, eos_token_id=stops or None, pad_token_id=PAD
    )
    rows = [row[width:].tolist() for row in out]
    ends = [next((i + 1 for i, token in enumerate(row) if token in stops), len(row)) for row in rows]
    return [tuple(row[:end]) for row, end in zip(rows, ends, strict=True)]


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_tokens_equal_transformers(tiny: Tiny, prompts: list[list[int]], family: str) -> None:
    model = tiny(family)
    free = reference_tokens(model, prompts, [])
    stops = [free[0][3], free[2][6]]  # so that rows end at different steps
    for stop_ids in ([], stops):
        done = TransformersEngine(model, PAD).generate(prompts, GREEDY, stop_ids, [0] * len(prompts))
        assert [c.token_ids for c in done] == reference_tokens(model, prompts, stop_ids)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("temperature", [0, 0.7, 1.0])
def test_logprobs_equal_a_full_forward(tiny: Tiny, prompts: list[list[int]], family: str, temperature: float) -> None:
    model = tiny(family)
    sampling = Sampling(max_new_tokens=12, temperature=temperature)
    done = TransformersEngine(model, PAD).generate(prompts, sampling, [], range(7))
    for prompt, completion in zip(prompts, done, strict=True):
        expected = reference_logprobs(model, prompt, completion, temperature or 1.0)
        assert completion.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.5])
def test_first_tokens_follow_the_softmax(tiny: Tiny, temperature: float) -> None:
    """Pearson's chi-square over 8,000 seeds; its 0.9999 quantile by Wilson and Hilferty."""
    model, n = tiny("llama"), 8000
    engine = TransformersEngine(model, PAD, batch_size=4000)
    done = engine.generate([[5, 9, 11]] * n, Sampling(1, temperature), [], range(n))
    counts = Counter(c.token_ids[0] for c in done)
    with torch.no_grad():
        logits = model(torch.tensor([[5, 9, 11]])).logits[0, -1].double()
    p = torch.softmax(logits / temperature, dim=-1).numpy()
    often = np.flatnonzero(p * n >= 5)
    expected = np.append(p[often], 1 - p[often].sum()) * n
    observed = np.array([counts[int(i)] for i in often])
    observed = np.append(observed, n - observed.sum())
    freedom = len(often)
    assert freedom >= 10
    limit = freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3
    assert ((observed - expected) ** 2 / expected).sum() < limit


def test_successive_tokens_are_independent_draws(tiny: Tiny) -> None:
    """With one uniform reused over the steps, the ranks of two tokens of a row would correlate."""
    model, n = tiny("llama"), 2000
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)  # uniform over the vocabulary whatever was said
    done = TransformersEngine(model, PAD, batch_size=n).generate([[5]] * n, Sampling(2), [], range(n))
    first, second = np.array([c.token_ids for c in done]).T
    assert abs(np.corrcoef(first, second)[0, 1]) < 4.5 / math.sqrt(n)
    assert done[0].logprobs == pytest.approx([-math.log(320)] * 2, abs=1e-5)


def test_inverse_transform_never_draws_the_impossible() -> None:
    logp = torch.log(torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]])).repeat(5, 1)
    uniforms = torch.tensor([0.0, 0.2499, 0.2501, 0.9, 1 - 2**-53], dtype=torch.float64)
    assert hf._Sampler._inverse(logp, uniforms).squeeze(1).tolist() == [1, 1, 3, 3, 3]


def test_a_sample_depends_on_its_seed_alone(tiny: Tiny, prompts: list[list[int]]) -> None:
    engine = TransformersEngine(tiny("qwen3"), PAD)
    sampling, seeds = Sampling(max_new_tokens=12), [11, 12, 13, 14, 15, 16, 2**62 + 1]
    together = engine.generate(prompts, sampling, [], seeds)
    alone = [engine.generate([p], sampling, [], [seed])[0] for p, seed in zip(prompts, seeds, strict=True)]
    backwards = engine.generate(prompts[::-1], sampling, [], seeds[::-1])[::-1]
    chunked = TransformersEngine(tiny("qwen3"), PAD, batch_size=3).generate(prompts, sampling, [], seeds)
    for other in (alone, backwards, chunked):
        same_samples(together, other)
    longer = engine.generate(prompts, Sampling(max_new_tokens=20), [], seeds)
    assert [c.token_ids[:12] for c in longer] == [c.token_ids for c in together]
    others = engine.generate(prompts, sampling, [], [seed + 100 for seed in seeds])
    assert all(a.token_ids != b.token_ids for a, b in zip(together, others, strict=True))


def same_samples(a: Sequence[Completion], b: Sequence[Completion]) -> None:
    assert [c.token_ids for c in a] == [c.token_ids for c in b]
    for one, other in zip(a, b, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert one.finish == other.finish


def test_stop_tokens_end_rows_and_are_kept(tiny: Tiny, prompts: list[list[int]]) -> None:
    engine = TransformersEngine(tiny("llama"), PAD)
    free = engine.generate(prompts, Sampling(20), [], range(7))
    stops = [free[0].token_ids[0], free[3].token_ids[4]]
    done = engine.generate(prompts, Sampling(20), stops, range(7))
    finishes = set()
    for completion, whole in zip(done, free, strict=True):
        end = next((i + 1 for i, token in enumerate(whole.token_ids) if token in stops), 20)
        assert completion.token_ids == whole.token_ids[:end]
        assert len(completion.logprobs) == end
        assert completion.finish == ("stop" if completion.token_ids[-1] in stops else "length")
        finishes.add(completion.finish)
    assert finishes == {"stop", "length"}
    assert len(done[0].token_ids) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_compaction_changes_nothing(
    tiny: Tiny, prompts: list[list[int]], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(family)
    free = TransformersEngine(model, PAD).generate(prompts, Sampling(20), [], range(7))
    stops = [c.token_ids[2 * i] for i, c in enumerate(free)]  # a row leaves every other step
    results = []
    for share in (0.0, 0.75, 1.0):
        monkeypatch.setattr(hf, "_COMPACT_BELOW", share)
        results.append(TransformersEngine(model, PAD).generate(prompts, Sampling(20), stops, range(7)))
    assert len({len(c.token_ids) for c in results[0]}) > 2
    same_samples(results[0], results[1])
    same_samples(results[0], results[2])


def test_no_prompts(tiny: Tiny) -> None:
    assert TransformersEngine(tiny("llama"), PAD).generate([], Sampling(), [], []) == []


@pytest.mark.parametrize(
    ("rows", "seeds", "sampling", "message"),
    [
        ([[1], []], [0, 0], Sampling(4), r"Prompt 1 has no tokens. Give at least one"),
        ([[1] * 250], [0], Sampling(7), r"Prompt 0 of 250 tokens leaves no room for 7 .* 256. Shorten the dialogue or"),
        ([[1], [2]], [0], Sampling(4), r"2 prompts came with 1 seeds. Give one seed per prompt"),
        ([[1]], [0], Sampling(0), r"needs max_new_tokens >= 1"),
        ([[1]], [0], Sampling(4, -1.0), r"temperature >= 0. Correct these"),
    ],
)
def test_bad_input(tiny: Tiny, rows: list[list[int]], seeds: list[int], sampling: Sampling, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        TransformersEngine(tiny("llama"), PAD).generate(rows, sampling, [], seeds)


def test_a_prompt_that_just_fits(tiny: Tiny) -> None:
    engine = TransformersEngine(tiny("llama"), PAD)
    assert engine.context_length == 256
    assert len(engine.generate([[1] * 250], Sampling(6), [], [0])[0].token_ids) == 6


def test_training_mode_is_off_while_sampling_and_restored(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama")
    engine = TransformersEngine(model, PAD)
    for mode in (True, False):
        model.train(mode)
        engine.generate([[1, 2]], Sampling(2), [], [0])
        assert model.training is mode
    model.train()

    def fail(*_: object) -> None:
        assert not model.training
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine, "_generate", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        engine.generate([[1, 2]], Sampling(2), [], [0])
    assert model.training


def test_sampling_leaves_no_trace(tiny: Tiny) -> None:
    """Neither gradients nor the global random streams are touched."""
    model = tiny("llama")
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]
    TransformersEngine(model, PAD).generate([[1, 2]], Sampling(4), [], [0])
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # type: ignore[index]
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_completions_carry_the_policy_version(tiny: Tiny) -> None:
    engine = TransformersEngine(tiny("llama"), PAD)
    assert engine.generate([[1]], Sampling(1), [], [0])[0].version == 0
    engine.version = 41
    assert [c.version for c in engine.generate([[1], [2]], Sampling(1), [], [0, 0])] == [41, 41]
