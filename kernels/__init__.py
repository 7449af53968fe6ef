"""The kernels of the live engine, each beside its torch reference.

``kernels.silu_mul(...)`` and the like run on any device: by Triton where the tensors are on a GPU (or Triton's
interpreter is on), by the reference on a CPU. ``OPERATIONS`` has them all: what the files here mark by ``@operation``.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from kernels.errors import UnknownOperationError


def _operations() -> Iterator[Callable[..., Any]]:
    for module in iter_modules(__path__):
        found = import_module(f"{__name__}.{module.name}")
        for value in vars(found).values():
            if hasattr(value, "reference") and value.__module__ == found.__name__:
                yield value


OPERATIONS = {operation.__name__: operation for operation in _operations()}
"""Every operation by its name."""

__all__ = ["OPERATIONS", *OPERATIONS]

globals().update(OPERATIONS)  # an operation named like its module would otherwise be hidden behind it


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownOperationError(name, sorted(OPERATIONS))
