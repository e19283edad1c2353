"""A policy that trains in this process and samples on a server: each optimiser step's weights go there once."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from duologue.engines.base import Completion, Sampling
from duologue.engines.sglang import ServedWeights, SGLangEngine
from duologue.errors import DuologueError
from duologue.trainers.processes import first_alone, process_index, together


class ServedPolicy:
    """An ``Engine`` whose weights are a model's that trains here.

    Setting ``version`` writes the policy to a folder and has the server load it: the adapter if the model has one,
    else all weights. The server must serve the same base model and be able to read the folder. Several processes set it
    at the same time: sharded weights are gathered by all, the first sends them, the others follow; each asks for its
    own dialogues.
    """

    def __init__(self, engine: SGLangEngine, save: Callable[[Path], None], folder: Path) -> None:
        """Pair a model with the server that samples for it.

        Args:
            engine: of the server.
            save: writes the whole policy, or its adapter, to a folder; called on every process, and there on the first.
            folder: for the policy of the last step.
        """
        self.engine = engine
        self.save = save
        self.folder = folder
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
        target = self.folder / f"step-{version}"
        together(lambda: self._written(target))
        weights = first_alone(lambda: self._sent(target, version))
        assert weights
        self.engine.follow(weights)
        self._version = version

    def _written(self, target: Path) -> None:
        if process_index() == 0:
            shutil.rmtree(target, ignore_errors=True)  # what another run may have left there
        self.save(target)

    def _sent(self, target: Path, version: int) -> ServedWeights:
        if (target / "adapter_config.json").is_file():
            self.engine.sync_adapter(target, version)
        else:
            self.engine.sync_weights(target, version)
        for folder in self.folder.glob("step-*"):
            if folder != target:
                shutil.rmtree(folder)
        return self.engine.weights

    def release(self) -> None:
        """Have the server drop the adapter that it was given last; the next ``version`` sends it again.

        A server that does not is no failure of the run: then a line on standard error says so.
        """
        self._version = None
        if process_index():
            return
        try:
            self.engine.unload_adapter()
        except DuologueError as error:
            print(f"The run's adapter may still be on the server: {error}", file=sys.stderr)

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        """Continue each prompt on the server (see ``SGLangEngine.generate``)."""
        return self.engine.generate(prompts, sampling, stop_ids, seeds)
