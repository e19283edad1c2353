"""Real servers, started once for all tests that ask for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from examples.sglang_cpu.process import MISSING, PYTHON, SGLangProcess
from examples.sglang_cpu.train import FLAGS
from tests.servers.transformers_process import make_model
from tests.servers.vllm_process import MISSING as NO_VLLM
from tests.servers.vllm_process import PYTHON as VLLM_PYTHON
from tests.servers.vllm_process import VLLMProcess


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Leave a core to the server."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="package")
def served_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of random weights with a byte-level tokenizer."""
    return make_model(tmp_path_factory.mktemp("served") / "tiny-llama")


@pytest.fixture(scope="package")
def sglang_server(served_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SGLangProcess]:
    """A SGLang server of that model in float32, with adapters; its ``url`` has no path."""
    if not PYTHON.is_file():
        pytest.skip(MISSING)
    plain = ("--sampling-defaults", "openai")  # transformers' name for "all tokens" is none of SGLang's
    server = SGLangProcess(served_model, tmp_path_factory.mktemp("sglang") / "log", *FLAGS, *plain)
    try:
        server.start()
        yield server
    finally:
        server.end()


@pytest.fixture(scope="package")
def vllm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same kind of model with heads of a size that vLLM knows."""
    return make_model(tmp_path_factory.mktemp("vllm") / "tiny-llama", head_size=32)


@pytest.fixture(scope="package")
def vllm_server(vllm_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMProcess]:
    """A ``vllm serve`` of it in float32."""
    if not VLLM_PYTHON.is_file():
        pytest.skip(NO_VLLM)
    server = VLLMProcess(vllm_model, tmp_path_factory.mktemp("vllm") / "log")
    try:
        server.start()
        yield server
    finally:
        server.end()
