"""A policy that trains in this process and samples on a server: each optimiser step's weights go there once."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from duologue.engines.base import Completion, Sampling
from duologue.engines.sglang import ServedWeights, SGLangEngine
from duologue.errors import DuologueError
from duologue.trainers.processes import first_alone, process_index, together

if TYPE_CHECKING:
    import torch


class Carrier(Protocol):
    """Takes a policy's weights from where it trains to where it samples."""

    def gather(self, version: int) -> None:
        """Bring the whole weights together; called on every process."""

    def send(self, engine: SGLangEngine, version: int) -> None:
        """Have the server sample from them; called on the first process, after ``gather``."""


class ByDisk:
    """Writes the policy to a folder that the server reads: its adapter if it has one, else all weights."""

    def __init__(self, save: Callable[[Path], None], folder: Path) -> None:
        """Choose the way.

        Args:
            save: writes the whole policy, or its adapter, to a folder; called on every process, and there on the first.
            folder: for the policy of the last step.
        """
        self.save = save
        self.folder = folder

    def gather(self, version: int) -> None:
        """Write the folder of a step."""
        target = self._target(version)
        if process_index() == 0:
            shutil.rmtree(target, ignore_errors=True)  # what another run may have left there
        self.save(target)

    def send(self, engine: SGLangEngine, version: int) -> None:
        """Have the server load it, and remove those of earlier steps."""
        target = self._target(version)
        if (target / "adapter_config.json").is_file():
            engine.sync_adapter(target, version)
        else:
            engine.sync_weights(target, version)
        for folder in self.folder.glob("step-*"):
            if folder != target:
                shutil.rmtree(folder)

    def _target(self, version: int) -> Path:
        return self.folder / f"step-{version}"


class ByNetwork:
    """Sends all weights from memory to memory, over NCCL between GPUs, else over gloo."""

    def __init__(self, whole: Callable[[], Mapping[str, torch.Tensor]]) -> None:
        """Choose the way.

        Args:
            whole: brings the whole weights together; called on every process.
        """
        self.whole = whole
        self._weights: Mapping[str, torch.Tensor] = {}

    def gather(self, version: int) -> None:
        """Bring them together."""
        self._weights = self.whole()

    def send(self, engine: SGLangEngine, version: int) -> None:
        """Send them."""
        weights, self._weights = self._weights, {}
        engine.sync_tensors(weights, version)


class ServedPolicy:
    """An ``Engine`` whose weights are a model's that trains here.

    Setting ``version`` has the server sample from the weights of now. The server must serve the same base model.
    Several processes set it at the same time: sharded weights are gathered by all, the first sends them, the others
    follow; each asks for its own dialogues.
    """

    def __init__(self, engine: SGLangEngine, carrier: Carrier) -> None:
        """Pair a model with the server that samples for it.

        Args:
            engine: of the server.
            carrier: how its weights get there.
        """
        self.engine = engine
        self.carrier = carrier
        self._version: int | None = None

    @property
    def context_length(self) -> int:
        """Return the server's context window in tokens."""
        return self.engine.context_length

    @property
    def version(self) -> int:
        """The policy version on the server. Setting another one sends the weights.

        Raises:
            DuologueError: on every process, if one cannot write the weights or the server does not load them.
        """
        return self._version or 0

    @version.setter
    def version(self, version: int) -> None:
        if version == self._version:
            return
        together(lambda: self.carrier.gather(version))
        weights = first_alone(lambda: self._sent(version))
        assert weights
        self.engine.follow(weights)
        self._version = version

    def _sent(self, version: int) -> ServedWeights:
        self.carrier.send(self.engine, version)
        return self.engine.weights

    def release(self) -> None:
        """Leave nothing of the run on the server but whole weights: no adapter, no group; ``version`` sends them again.

        A server that does not do so is no failure of the run: then a line on standard error says so.
        """
        self._version = None
        if process_index():
            return
        try:
            self.engine.unload_adapter()
            self.engine.end_broadcast()
        except DuologueError as error:
            print(f"Something of the run may still be on the server: {error}", file=sys.stderr)

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        """Continue each prompt on the server (see ``SGLangEngine.generate``)."""
        return self.engine.generate(prompts, sampling, stop_ids, seeds)
