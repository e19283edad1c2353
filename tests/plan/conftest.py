"""A tiny Llama, and runs on paper."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from duologue.analysis.plan.run import Run, run_of_file

SHAPE: dict[str, Any] = {
    "parameters": 1e9,
    "trained_parameters": 1e7,
    "layers": 10,
    "hidden": 1000,
    "kv_heads": 2,
    "head_size": 50,
    "vocabulary": 5000,
    "inner": 3000,
}
MACHINE: dict[str, Any] = {"gpus": 4, "memory_gb": 40, "tflops": 100}


@pytest.fixture
def llama() -> Callable[..., LlamaForCausalLM]:
    """Makes a Llama with fewer heads for keys and values than for queries."""

    def make(dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
        config = LlamaConfig(
            vocab_size=300,
            hidden_size=64,
            intermediate_size=160,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            tie_word_embeddings=True,
        )
        model: Any = LlamaForCausalLM(config)
        made: LlamaForCausalLM = model.to(dtype)
        return made

    return make


@pytest.fixture
def on_paper() -> Callable[..., Run]:
    """Plans a run whose model and machine are given by hand."""

    def make(machine: dict[str, Any] | None = None, shape: dict[str, Any] | None = None, **fields: Any) -> Run:
        given = {"machine": {**MACHINE, **(machine or {})}, "shape": {**SHAPE, **(shape or {})}}
        return run_of_file({"max_turns": 4, "max_tokens_per_turn": 100, "max_total_tokens": 1000, **fields}, given)

    return make
