"""People who want a word and leave when they hear it; a byte-level tokenizer and a model that learns fast."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel, load_model
from duologue.simulators.logs import LoggedDialogue
from duologue.trainers.calibration_config import CalibrateConfig
from duologue.types import Message, StopReason, Task

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPT = "want: {{ task.instruction }}; key: {{ task.reference }}"
"""A short oracle context."""


def log(
    *texts: str, name: str = "d", stop: StopReason | None = None, person: str | None = None, word: str = "red"
) -> LoggedDialogue:
    """A logged dialogue, the person first."""
    messages = tuple(Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(texts))
    return LoggedDialogue(name, Task(word, f"say {word}", reference=word), messages, stop, person)


def people(count: int) -> list[LoggedDialogue]:
    """Dialogues of people who leave satisfied after the word, or give up after another one; two a person."""
    made = []
    for i in range(count):
        word, heard = ("red", "blue")[i % 2], i % 4 < 3
        stop = StopReason.USER_SATISFIED if heard else StopReason.USER_GAVE_UP
        texts = (f"say {word}", "what", f"{i} {word}", word if heard else "no", "thanks" if heard else "bye")
        made.append(log(*texts, name=f"d{i}", stop=stop, person=f"p{i // 2}", word=word))
    return made


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    core = Tokenizer(BPE())
    core.pre_tokenizer = ByteLevel(add_prefix_space=False)
    core.decoder = ByteLevelDecoder()
    corpus = ["word word user assistant go on satisfied give up say red say blue what no thanks bye want: key: student"]
    trainer = BpeTrainer(vocab_size=330, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    core.train_from_iterator(corpus, trainer)
    core.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<|im_start|>", "<|im_end|>")])
    made: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(scope="session")
def chat(tokenizer: PreTrainedTokenizerFast) -> ChatFormat:
    return ChatFormat(tokenizer)


@pytest.fixture(scope="session")
def model_folder(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with random weights, always the same ones."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def load(model_folder: Path) -> Callable[[], LoadedModel]:
    return lambda: load_model(str(model_folder), dtype="float32", device="cpu")


@pytest.fixture
def settings(model_folder: Path, tmp_path: Path) -> Callable[..., CalibrateConfig]:
    """Makes a configuration of a calibration that takes a second or two."""

    def make(**changes: object) -> CalibrateConfig:
        defaults: dict[str, object] = {
            "model": str(model_folder),
            "output": str(tmp_path / "user"),
            "epochs": 10,
            "learning_rate": 1e-2,
            "lora_rank": 4,
            "dtype": "float32",
        }
        return CalibrateConfig(**{**defaults, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture
def world() -> SimpleNamespace:
    return SimpleNamespace(log=log, people=people, PROMPT=PROMPT)
