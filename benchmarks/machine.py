"""What a number was measured on."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("duologue", "gymnasium", "numpy", "torch", "transformers", "trl", "peft")


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, load, versions, and torch's threads and accelerator if torch is in use. No host name."""
    torch = sys.modules.get("torch")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "torch_threads": torch.get_num_threads() if torch else None,
        "accelerator": torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
