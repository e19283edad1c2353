"""A real ``transformers serve`` of a model made up here, that tests may silence, kill and start again."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from examples.sglang_cpu.process import ServerProcess

MISSING = [name for name in ("fastapi", "uvicorn", "openai") if find_spec(name) is None]
"""What is not installed of what it needs."""
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder: Path, head_size: int = 8) -> Path:
    """Save a model of random weights that writes ASCII up to the cap on its tokens.

    Args:
        folder: where.
        head_size: of its four attention heads; not every server knows every one.
    """
    letters = sorted(ByteLevel.alphabet())
    core = Tokenizer(BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer, core.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    core.add_special_tokens([AddedToken(token, special=True) for token in ("<|im_start|>", "<|im_end|>")])
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|im_end|>", chat_template=_TEMPLATE)
    unsaid = [i for i, letter in enumerate(letters) if not "!" <= letter <= "z"] + [len(letters), len(letters) + 1]
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=4 * head_size,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        initializer_range=0.3 * (8 / head_size) ** 0.5,  # logits as large, whatever the size
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
    settings: Any = GenerationConfig
    model.generation_config = settings(
        do_sample=True, top_k=0, suppress_tokens=unsaid, eos_token_id=tokenizer.eos_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class TransformersProcess(ServerProcess):
    """A ``transformers serve``."""

    def __init__(self, model: Path, log: Path) -> None:
        super().__init__(log)
        program = "from transformers.cli.transformers import main; main()"
        flags = [str(model), "--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", str(self.port)]
        self.command = [sys.executable, "-c", program, "serve", *flags]

    def requests(self) -> int:
        """Return how many chats it has begun, as its log says."""
        return self.log.read_text().count("[Request received]")

    def wait_for_requests(self, count: int) -> None:
        """Wait until so many chats have begun."""
        ends = time.monotonic() + 30
        while self.requests() < count:
            assert time.monotonic() < ends, self.log.read_text()[-3000:]
            time.sleep(0.01)
