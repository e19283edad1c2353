"""The formulas of tokens and memory against tensors of a real, tiny model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, LlamaForCausalLM

from duologue.analysis.plan.lengths import Lengths
from duologue.analysis.plan.memory import (
    Batch,
    activation_bytes,
    cache_bytes,
    logit_bytes,
    moment_bytes,
    trained_bytes,
    weight_bytes,
)
from duologue.analysis.plan.model import shape_of
from duologue.analysis.plan.shape import Shape
from duologue.engines.base import Sampling
from duologue.engines.hf import TransformersEngine
from duologue.trainers.adapters import lora_config
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.policy_head import gathered

MakeLlama = Callable[..., LlamaForCausalLM]
SHAPE = Shape(1, 1, layers=3, hidden=64, kv_heads=2, head_size=16, vocabulary=300, inner=160)


def prepared(llama: MakeLlama, rank: int, dtype: torch.dtype) -> tuple[Any, Shape]:
    """Return a model as training has it, and its shape."""
    model: Any = llama(dtype)
    parameters = sum(p.numel() for p in model.parameters())
    if rank:
        from peft import get_peft_model

        model = get_peft_model(model, lora_config(InteractiveConfig(lora_rank=rank), model))
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return model, replace(SHAPE, parameters=parameters, trained_parameters=trained)


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")
@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_a_real_step_holds(llama: MakeLlama, rank: int, dtype: torch.dtype) -> None:
    model, shape = prepared(llama, rank, dtype)
    width = dtype.itemsize
    assert weight_bytes(shape, width) == sum(p.nbytes for p in model.parameters())

    ids, sampled = torch.randint(0, 300, (2, 80)), torch.zeros(2, 70, dtype=torch.long)
    sampled[:, ::5] = 1
    held, loss = kept_for_backward(model, lambda: gathered(model, ids, torch.ones_like(ids), sampled, 1.0)[0].sum())
    batch = Batch(tokens=2 * 80, positions=int(sampled.sum()), gpu=False)
    assert held == pytest.approx(activation_bytes(shape, batch, width) + logit_bytes(shape, batch) / 2, rel=0.05)

    loss.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    assert trained_bytes(shape, width) == sum(p.grad.nbytes for p in trained)
    optimiser = torch.optim.AdamW(trained)
    optimiser.step()
    moments = sum(v.nbytes for state in optimiser.state.values() for k, v in state.items() if k != "step")
    assert moment_bytes(shape, width) == moments


def kept_for_backward(model: Any, forward: Callable[[], Any]) -> tuple[int, Any]:
    """Return the bytes of tensors that autograd keeps, parameters left out, and the result."""
    sizes, alive = {}, []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        alive.append(tensor)  # else its storage could be used again, and would be counted once
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = forward()
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    return sum(size for place, size in sizes.items() if place not in own), out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keys_and_values_of_a_real_cache(llama: MakeLlama, dtype: torch.dtype) -> None:
    model: Any = llama(dtype)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.randint(0, 300, (5, 40)), cache=cache, use_cache=True)
    layers: Any = cache.layers
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
    assert cache_bytes(SHAPE, 5 * 40, dtype.itemsize) == held


def test_the_engine_computes_as_many_prompt_tokens_as_the_formula_says(llama: MakeLlama) -> None:
    model = llama()
    computed, forward = [], model.forward

    def counted(ids: torch.Tensor, **others: Any) -> Any:
        computed.append(ids.numel())
        return forward(ids, **others)

    model.forward = counted
    engine = TransformersEngine(model, pad_id=0)
    lengths = Lengths(dialogues=3, group_size=3, turns=4, opening=12, said=5, heard=7)
    rows = [[i + 1] * 12 for i in range(3)]
    prompts = 0
    for turn in range(4):
        prompts += sum(map(len, rows))
        done = engine.generate(rows, Sampling(max_new_tokens=5, temperature=1.0), stop_ids=[], seeds=[turn, 7, 9])
        rows = [[*row, *one.token_ids, *([20 + turn] * 7)] for row, one in zip(rows, done, strict=True)]
    one_by_one = 3 * 4 * (5 - 1)  # the first token of a turn comes from the prompt's own pass
    assert sum(computed) - one_by_one == 3 * lengths.prefill_cached
    assert prompts == 3 * lengths.prefill_plain
    assert 3 * (lengths.total + 7) == sum(map(len, rows))


@pytest.mark.parametrize(("rank", "top"), [(0, None), (4, None), (4, 1)])
def test_a_folders_shape_is_the_models_own(llama: MakeLlama, tmp_path: Any, rank: int, top: int | None) -> None:
    llama().save_pretrained(tmp_path)
    config = InteractiveConfig(lora_rank=rank, lora_top_layers=top)
    shape = shape_of(str(tmp_path), config)
    linear = 64 + 64, 64 + 32, 64 + 32, 64 + 64, *(64 + 160,) * 3  # q, k, v, o; gate, up, down: inputs + outputs
    own = sum(p.numel() for p in llama().parameters())
    adapters = rank * sum(linear) * (top or 3)
    assert shape == replace(SHAPE, parameters=own, trained_parameters=adapters or own)
