"""A language model that trains in a second: a word-level tokenizer, two layers of Llama, a user who wants a word."""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from peft import PeftModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from duologue.engines.chat import ChatFormat
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import LoadedModel, load_model, without_bars
from duologue.envs.tasks.lists import TaskList
from duologue.envs.vector_env import DialogueVectorEnv
from duologue.trainers.agents import Limits, TokenAgent
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.progress import quiet_console
from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

if TYPE_CHECKING:
    from tests.engines.sglang_standin import StandIn

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
SPECIALS = ["<pad>", "<unk>", "<|im_start|>", "<|im_end|>"]
WORDS = (
    "user assistant system yes no please say red blue hello hi now then word what is it the a you i not or and why how"
)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TASKS = [Task(word, f"please say {word}", reference=word) for word in ("red", "blue")]
GREETINGS = ("hello", "hi", "now", "then")


class Wants:
    """Asks for the task's word until it hears it; greets by its seed. ``trick`` may answer in its stead."""

    signature = "wants"

    def __init__(self, trick: Callable[[Dialogue], object] | None = None) -> None:
        self.trick = trick

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        return [self.answer(dialogue) for dialogue in dialogues]

    def answer(self, dialogue: Dialogue) -> Any:
        if self.trick and (turn := self.trick(dialogue)):
            return turn
        if not dialogue.messages:
            return UserTurn(f"{greeting(dialogue)} {dialogue.task.instruction}", acts=(Act.OPEN,))
        if dialogue.task.reference in dialogue.messages[-1]["content"].split():
            return UserTurn("yes", stop=StopReason.USER_SATISFIED, notes={"heard": 1.0})
        return UserTurn(f"no {dialogue.task.instruction}", acts=(Act.REJECT,), notes={"again": 1.0})


def greeting(dialogue: Dialogue) -> str:
    return GREETINGS[dialogue.seed % len(GREETINGS)]


def heard(dialogues: Sequence[Dialogue]) -> list[float | None]:
    """1.0 if the assistant said the word."""
    return [float(d.task.reference in " ".join(d.said_by("assistant")).split()) for d in dialogues]


def graded(dialogues: Sequence[Dialogue]) -> list[float | None]:
    """A score that differs between almost all dialogues, so that no group is flat."""
    return [int(sha256(repr(d.messages).encode()).hexdigest()[:4], 16) / 0xFFFF for d in dialogues]


class Lottery:
    """Rewards drawn by hash of a counter: whatever the assistant says, it gets the same series."""

    def __init__(self) -> None:
        self.counter = itertools.count()

    def __call__(self, dialogues: Sequence[Dialogue]) -> list[float | None]:
        return [float(sha256(f"{next(self.counter)}".encode()).digest()[0] % 2) for _ in dialogues]


def hang(dialogue: Dialogue) -> UserTurn:
    time.sleep(1.0)
    return UserTurn("too late")


def make_env(
    num_envs: int, reward: Any = heard, simulator: Any = None, max_turns: int = 3, timeout: float | None = 30.0
) -> DialogueVectorEnv:
    return DialogueVectorEnv(
        num_envs, TaskList(TASKS, "words"), simulator or Wants(), reward, max_turns, call_timeout=timeout
    )


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices lose more time in threads that wait for each other than they win."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate([*SPECIALS, *WORDS.split()])}
    backend = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = Whitespace()
    made: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    made.chat_template = TEMPLATE
    return made


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
        max_position_embeddings=128,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
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
def chat(tokenizer: PreTrainedTokenizerFast) -> ChatFormat:
    return ChatFormat(tokenizer)


@pytest.fixture
def make_agent(load: Callable[[], LoadedModel], chat: ChatFormat) -> Callable[..., TokenAgent]:
    def make(per_turn: int = 6, total: int = 100) -> TokenAgent:
        loaded = load()
        pad = loaded.tokenizer.pad_token_id
        assert isinstance(pad, int)
        return TokenAgent(TransformersEngine(loaded.model, pad), chat, Limits(per_turn, total))

    return make


@pytest.fixture
def settings(model_folder: Path, tmp_path: Path) -> Callable[..., InteractiveConfig]:
    """Makes a configuration of a run that takes a second."""

    def make(**changes: Any) -> InteractiveConfig:
        defaults: dict[str, Any] = {
            "model": str(model_folder),
            "output": str(tmp_path / "run"),
            "steps": 2,
            "groups_per_step": 2,
            "group_size": 4,
            "micro_batch_size": 4,
            "max_tokens_per_turn": 6,
            "max_total_tokens": 100,
            "lora_rank": 0,
            "learning_rate": 1e-3,
            "dtype": "float32",
        }
        return InteractiveConfig(**{**defaults, **changes})

    return make


@pytest.fixture
def trainer(settings: Callable[..., InteractiveConfig]) -> Callable[..., InteractiveTrainer]:
    """Makes a trainer in the world below; ``env`` holds changes of the environment."""

    def make(env: dict[str, Any] | None = None, callbacks: Sequence[Any] = (), **changes: Any) -> InteractiveTrainer:
        return InteractiveTrainer(
            settings(**changes), make_env=lambda n: make_env(n, **(env or {})), callbacks=callbacks
        )

    return make


def score_batch(made: InteractiveTrainer) -> dict[str, Any]:
    """Play and score one training step's dialogues, as TRL does, and return the batch before it is cut up."""
    trl = made.trainer
    trl.model.train()
    trl.current_gradient_accumulation_steps = trl.args.gradient_accumulation_steps
    rows = [dict(row) for row in trl.train_dataset for _ in range(made.config.group_size)]
    with quiet_console():
        out: dict[str, Any] = trl._generate_and_score_completions(rows[: made.config.episodes_per_step])
    return out


def gradient(model: Any, losses: Sequence[Any]) -> Any:
    """The gradient that losses accumulate, as one vector."""
    model.zero_grad()
    for loss in losses:
        loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.fixture
def world() -> SimpleNamespace:
    return SimpleNamespace(
        make_env=make_env,
        tasks=TASKS,
        Wants=Wants,
        heard=heard,
        graded=graded,
        Lottery=Lottery,
        hang=hang,
        score_batch=score_batch,
        gradient=gradient,
    )


@pytest.fixture
def server(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[StandIn]":
    """A stand-in that serves the tiny model, adapters from their folders."""
    from tests.engines.sglang_standin import on_loopback, standin  # launched workers read this file, and have no tests

    on_loopback(monkeypatch)

    @lru_cache(maxsize=4)
    def model(weights: str, adapter: str | None) -> Any:
        with without_bars():
            base: Any = LlamaForCausalLM.from_pretrained(model_folder if weights == "base" else weights)
            return (PeftModel.from_pretrained(base, adapter) if adapter else base).eval()

    @torch.no_grad()
    def logits(tokens: Sequence[int], weights: str, adapter: str | None) -> Any:
        return model(weights, adapter)(torch.tensor([list(tokens)])).logits[0, -1].double().numpy()

    async def no_pause(seconds: float) -> None:
        pass

    monkeypatch.setattr("duologue.engines.http._pause", no_pause)
    with standin(logits, context=128) as running:
        yield running
