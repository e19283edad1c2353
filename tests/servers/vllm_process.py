"""A real vLLM for CPU, where one is installed: a server of its own, and scripts in its environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from examples.sglang_cpu.process import ROOT, ServerProcess

PYTHON = Path(os.environ.get("DUOLOGUE_VLLM_PYTHON") or ROOT / ".venv-vllm" / "bin" / "python")
MISSING = f"there is no {PYTHON.name} of a vLLM environment (docs/engines.md says how to make one in .venv-vllm)"
_EAGER = {"TORCHDYNAMO_DISABLE": "1", "VLLM_USE_AOT_COMPILE": "0"}
"""TRL has no argument for vLLM's ``enforce_eager``; compiling takes minutes on a CPU."""
_SMALL = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
_PLAIN = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "VLLM_NO_USAGE_STATS": "1"}


class VLLMProcess(ServerProcess):
    """``vllm serve`` in float32, with the development endpoints that TRL's client asks."""

    def __init__(self, model: Path, log: Path) -> None:
        super().__init__(log)
        command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--dtype", "float32"]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--max-model-len", "2048", "--enforce-eager"]
        settings = {**_SMALL, **_PLAIN, "VLLM_SERVER_DEV_MODE": "1"}
        self.command = ["env", *(f"{name}={value}" for name, value in settings.items()), *command]
        self.command += ["--logprobs-mode", "processed_logprobs"]


def run_beside_vllm(script: Path, *arguments: str) -> None:
    """Run a script in vLLM's environment.

    Raises:
        AssertionError: if it fails, with the end of what it said.
    """
    settings = {**_EAGER, **_SMALL, **_PLAIN, "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "PYTHONPATH": str(ROOT)}
    command = [str(PYTHON), str(script), *arguments]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
