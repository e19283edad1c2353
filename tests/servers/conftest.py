"""Real servers, started once for all tests that ask for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from examples.sglang_cpu.process import MISSING, PYTHON, SGLangProcess
from examples.sglang_cpu.train import FLAGS
from tests.servers.transformers_process import make_model


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
