"""What costs follow from: the shape of a language model and the numbers of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.errors import DuologueError


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers about a language model from which costs follow."""

    parameters: float
    trained_parameters: float
    """Those of the adapters; all of them for full training."""
    layers: int
    hidden: int
    kv_heads: int
    head_size: int
    vocabulary: int
    inner: int | None = None
    """Width inside the feed-forward layers; None = four times ``hidden``."""

    def __post_init__(self) -> None:
        """Check that there is a model.

        Raises:
            DuologueError: for a number that is not above 0, or more trained parameters than there are.
        """
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise DuologueError(f"{name} of a model is {value!r}. Set it to a number above 0.")
        if self.trained_parameters > self.parameters:
            raise DuologueError(
                f"trained_parameters {self.trained_parameters:g} are more than parameters {self.parameters:g}. "
                "Set both the same for full training."
            )

    @property
    def adapters(self) -> bool:
        """Return True if only adapters are trained."""
        return self.trained_parameters < self.parameters

    @property
    def width_inside(self) -> int:
        """Return the width inside the feed-forward layers."""
        return self.inner or 4 * self.hidden


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a run is meant for."""

    gpus: int
    """0 = a CPU will do."""
    memory_gb: float
    """Of each GPU, or of the machine."""
    tflops: float
    """Peak of one GPU, or of the CPU, in the type of the weights."""
    training_utilisation: float = 0.3
    """Share of the peak that training, and reading a prompt, reach."""
    generation_utilisation: float = 0.05
    """Share of the peak that generation token by token reaches."""
    network_gbs: float = 50.0
    """GB/s from one GPU to another; 50 = one link of 400 Gbit/s."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            DuologueError: for a negative number of GPUs, a size or speed that is not above 0, or a share above 1.
        """
        if self.gpus < 0:
            raise DuologueError(f"gpus is {self.gpus}. Set it to 0 (a CPU) or more.")
        for name in ("memory_gb", "tflops", "network_gbs"):
            if not getattr(self, name) > 0:
                raise DuologueError(f"{name} is {getattr(self, name)!r}. Set it to a number above 0.")
        for name in ("training_utilisation", "generation_utilisation"):
            if not 0 < getattr(self, name) <= 1:
                raise DuologueError(f"{name} is {getattr(self, name)!r}. Set it to a share above 0 and at most 1.")

    @property
    def devices(self) -> int:
        """Return the number of GPUs; 1 for a CPU."""
        return max(1, self.gpus)


def bytes_per_number(dtype: str, machine: Machine) -> int:
    """Return the bytes of one weight; ``auto`` is taken as bfloat16 on a GPU and float32 on a CPU."""
    return 4 if dtype == "float32" or (dtype == "auto" and not machine.gpus) else 2
