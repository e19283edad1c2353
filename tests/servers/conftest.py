"""Real servers, started once for all tests that ask for them."""

from collections.abc import Iterator

import pytest

from duologue.engines.models import default_model_folder
from examples.sglang_cpu.process import MISSING, PYTHON, SGLangProcess


@pytest.fixture(scope="session")
def sglang_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SGLangProcess]:
    """A SGLang server of the default model, with adapters; its ``url`` has no path."""
    if not PYTHON.is_file():
        pytest.skip(MISSING)
    log = tmp_path_factory.mktemp("sglang") / "log"
    server = SGLangProcess(
        default_model_folder(),
        log,
        "--dtype",
        "float32",
        "--enable-lora",
        "--max-lora-rank",
        "16",
        "--lora-target-modules",
        "all",
    )
    server.start()
    yield server
    server.end()
