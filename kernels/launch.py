"""How operations choose between kernel and reference, and what a launch is configured by."""

import functools
import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import torch

from kernels.errors import UnsupportedFormError

P = ParamSpec("P")
R = TypeVar("R")
_BY_REFERENCE = ContextVar("by_reference", default=False)


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """Tile sizes (constexpr arguments of the kernel, by name), warps per program and pipeline stages.

    ``max_registers`` bounds the registers of a thread, so that more programs fit a multiprocessor.
    """

    tiles: Mapping[str, Any] = field(default_factory=dict)
    num_warps: int = 4
    num_stages: int = 3
    max_registers: int | None = None

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the launch."""
        return {**self.tiles, **self.options()}

    def options(self) -> dict[str, int | None]:
        """The compiler's options."""
        return {"num_warps": self.num_warps, "num_stages": self.num_stages, "maxnreg": self.max_registers}


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on CPU tensors."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def capability(device: torch.device) -> int:
    """The compute capability of a GPU as one number (90 for sm_90); 90 where kernels are interpreted."""
    if device.type != "cuda":
        return 90
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


@contextmanager
def by_reference() -> Iterator[None]:
    """Have every operation run its reference meanwhile, on any device."""
    before = _BY_REFERENCE.set(True)
    try:
        yield
    finally:
        _BY_REFERENCE.reset(before)


def operation(
    reference: Callable[P, R], check: Callable[..., None] | None = None, strided: Collection[str] = ()
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Mark a launcher as an operation: on CPU tensors, unless interpreted, it runs ``reference`` instead.

    The launcher takes the arguments of the reference and ``config``, a ``LaunchConfig`` that replaces the shipped one;
    the reference needs no ``config`` and gets none. On any device ``check``, which takes the same arguments, first
    refuses forms that there are not; and so are tensors that are not contiguous, but those named in ``strided``.
    The operation has its ``reference`` as an attribute, by which ``kernels.OPERATIONS`` finds it.
    """

    def decorate(launcher: Callable[..., R]) -> Callable[..., R]:
        names = tuple(inspect.signature(launcher).parameters)

        @functools.wraps(launcher)
        def chosen(*args: Any, config: LaunchConfig | None = None, **kwargs: Any) -> R:
            on_cpu = True
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                if isinstance(value, torch.Tensor):
                    on_cpu = on_cpu and value.device.type == "cpu"
                    if not (name in strided or value.is_contiguous()):
                        what = f"strides of {name}"
                        raise UnsupportedFormError(launcher.__name__, what, value.stride(), ["contiguous tensors"])
            if check is not None:
                check(*args, **kwargs)
            if (on_cpu and not interpreted()) or _BY_REFERENCE.get():
                return reference(*args, **kwargs)
            return launcher(*args, config=config, **kwargs)

        chosen.reference = reference  # type: ignore[attr-defined]
        return chosen

    return decorate
