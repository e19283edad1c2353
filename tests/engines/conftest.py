"""Tokenizers and models small enough to build in a test; nothing is downloaded."""

import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from tests.engines.openai_standin import Server

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
CORPUS = ["user assistant system model what is the answer to this question it is fine hello there thanks a lot"]
VOCABULARY = 320
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,  # peaked distributions: argmax has no ties, sampling no flat histogram
    "max_position_embeddings": 256,
}


FAMILIES: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM),
}
EXTRA: dict[str, dict[str, Any]] = {
    "gemma3": {
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 8,
    }
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small only lose by threads, which spin on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


MakeTokenizer = Callable[..., PreTrainedTokenizerFast]


@pytest.fixture(scope="session")
def make_tokenizer() -> MakeTokenizer:
    """Byte-level BPE with a few merges; ``plain`` tokens are added but not special, as DeepSeek's role marks are."""

    def make(
        template: str | None, specials: Sequence[str], eos: str, bos: str | None = None, plain: Sequence[str] = ()
    ) -> PreTrainedTokenizerFast:
        core = Tokenizer(BPE())
        core.pre_tokenizer = ByteLevel(add_prefix_space=False)
        core.decoder = ByteLevelDecoder()
        alphabet = ByteLevel.alphabet()
        core.train_from_iterator(CORPUS, BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
        core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
        core.add_tokens([AddedToken(token, special=False, normalized=False) for token in plain])
        fast: Any = PreTrainedTokenizerFast
        tokenizer: PreTrainedTokenizerFast = fast(tokenizer_object=core, eos_token=eos, bos_token=bos, pad_token=eos)
        tokenizer.chat_template = template
        return tokenizer

    return make


@pytest.fixture
def tiny() -> Callable[[str], PreTrainedModel]:
    """A randomly initialised two-layer model by family; the same weights at each call."""

    def build(family: str) -> PreTrainedModel:
        config, model_class = FAMILIES[family]
        with torch.random.fork_rng():
            torch.manual_seed(7)
            model: PreTrainedModel = model_class(config(**SHAPE, **EXTRA.get(family, {})))
        model.train(False)
        return model

    return build


@pytest.fixture
def prompts() -> list[list[int]]:
    """Seven prompts of 1 to 21 tokens."""
    rng = np.random.default_rng(3)
    return [rng.integers(3, VOCABULARY, size=n).tolist() for n in (5, 1, 21, 12, 5, 17, 9)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    gc.collect()  # drops clients, which closes their connections
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("duologue.engines.http._pause", pause)
    return waited
