"""A SGLang server on a machine without a GPU: slow, but the real protocol, sampler, adapters and prefix cache.

    .venv-sglang/bin/python examples/sglang_cpu/serve.py --model-path FOLDER --port 30000

Takes SGLang's own flags. It listens on loopback unless --host says otherwise. On a machine with a GPU, start SGLang
as its documentation says; nothing in here is needed there.

Written for SGLang 0.5.23 beside a CPU build of torch, in an environment of its own (``make sglang``). Its worker
processes run this file again, so the patches stand at module level.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from typing import Any

os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")

import torch  # SGLang reads the variable when it is imported

CPU_FLAGS = {
    "--device": "cpu",
    "--attention-backend": "torch_native",
    "--sampling-backend": "pytorch",
    "--grammar-backend": "none",
    "--lora-backend": "torch_native",
    "--mem-fraction-static": "0.1",
    "--max-total-tokens": "20000",
    "--host": "127.0.0.1",
}
"""What differs from SGLang's defaults, beside ``--sleep-on-idle`` (which leaves the cores to whoever trains); flags on
the command line win."""


def define_torchvision_operators() -> None:
    """Declare two operators that PyPI's torchvision registers kernels for and that its CPU build does not bring."""
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


class NoKernels(types.ModuleType):
    """Stands where SGLang imports its kernels, of which there is no wheel for CPUs; the torch backends use none."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # a package, with no files

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*args: object, **kwargs: object) -> None:
            raise NotImplementedError(f"{self.__name__}.{name} is a kernel, and this server has none.")

        return missing


def without_pinned_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tensor factory that overlooks ``pin_memory``, which needs a GPU."""

    def made(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)
        return function(*args, **kwargs)

    return made


def patch() -> None:
    """Make SGLang importable and usable without a GPU."""
    define_torchvision_operators()
    sys.modules.setdefault("sgl_kernel", NoKernels("sgl_kernel"))
    for name in ("empty", "zeros", "ones", "full", "tensor", "arange", "empty_like", "zeros_like", "randn"):
        setattr(torch, name, without_pinned_memory(getattr(torch, name)))
    torch.Tensor.pin_memory = lambda self, *args, **kwargs: self  # type: ignore[method-assign]


def with_cpu_flags(given: list[str]) -> list[str]:
    """Return the command line with the flags that a CPU needs, where it does not say otherwise."""
    named = {flag.partition("=")[0] for flag in given}
    return [
        "--sleep-on-idle",
        *given,
        *(word for flag, value in CPU_FLAGS.items() if flag not in named for word in (flag, value)),
    ]


patch()

if __name__ == "__main__":
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args

    run_server(prepare_server_args(with_cpu_flags(sys.argv[1:])))
