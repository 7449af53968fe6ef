"""What a kernel is timed and tested by: cases, and sweeps of launch configurations to choose from.

A kernel file has ``cases(toy)``, and ``sweeps()`` if it likes. Where they are long they lie in
``benchmarks/kernels/NAME.py`` instead. ``toy`` asks for the same forms at sizes that Triton's interpreter gets through,
and those are compared with the torch reference.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from kernels.launch import LaunchConfig

Run = Callable[[], object]
Launch = Callable[[LaunchConfig | None], Run]


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel form at one shape.

    ``prepare`` makes fresh random inputs and returns a call without arguments; it is called several times, so that
    timing can rotate among input sets larger than the cache. ``bytes_moved`` counts each input read once and each
    output written once, ``operations`` two per multiply-add. ``kind`` and ``sample`` are the kernel kind and the shape
    parameters of calibration samples (docs/guides/calibrate.md), where calibration has such a kind.
    """

    kernel: str
    form: str
    dtype: str
    shape: Mapping[str, int]
    prepare: Callable[[torch.device], Run]
    bytes_moved: int
    operations: int
    kind: str | None = None
    sample: Mapping[str, int | str] | None = None

    @property
    def place(self) -> tuple[str, str, str, tuple[tuple[str, int], ...]]:
        """What cases are told apart by."""
        return self.kernel, self.form, self.dtype, tuple(sorted(self.shape.items()))

    def __str__(self) -> str:
        shape = " ".join(f"{name}={value}" for name, value in self.shape.items())
        return f"{self.kernel} {self.form} {self.dtype} {shape}"


def first_tensor(result: object) -> torch.Tensor:
    """The result, or the first of a tuple of them."""
    while not isinstance(result, torch.Tensor):
        assert isinstance(result, tuple)
        result = result[0]
    return result


@dataclass(frozen=True, slots=True)
class Sweep:
    """Launch configurations to choose among for one case.

    ``prepare`` makes fresh random inputs and returns a function from a configuration to a call without arguments.
    ``shipped`` is what the kernel chooses by itself on the chip that was measured (sm_90, 132 multiprocessors); none
    where it is not launch configurations that are to be chosen. ``compared`` makes of a result what must be equal
    whatever the configuration.
    """

    case: Case
    candidates: Sequence[LaunchConfig]
    prepare: Callable[[torch.device], Callable[[LaunchConfig], Run]]
    shipped: LaunchConfig | None = None
    compared: Callable[[object], torch.Tensor] = first_tensor
