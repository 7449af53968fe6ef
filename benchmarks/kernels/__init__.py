"""How fast the kernels are, as fractions of what the GPU at hand reaches itself.

A kernel is timed by the cases of its file in ``kernels/``, or else by those of the file here that has its name.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import kernels
from kernels.case import Case, Sweep

_HERE = Path(__file__).parent


def _has_cases(name: str) -> bool:
    return hasattr(import_module(f"kernels.{name}"), "cases")


MODULES = tuple(
    sorted(
        file.stem
        for file in Path(kernels.__path__[0]).glob("*.py")
        if file.stem != "__init__" and (_has_cases(file.stem) or (_HERE / file.name).exists())
    )
)
"""The kernel files that are timed."""


def _module(name: str) -> ModuleType:
    return import_module(f"kernels.{name}" if _has_cases(name) else f"{__name__}.{name}")


def cases_of(name: str, toy: bool = False) -> list[Case]:
    """The cases of a kernel file."""
    found: list[Case] = _module(name).cases(toy)
    return found


def sweeps_of(name: str) -> list[Sweep]:
    """The sweeps of a kernel file, none where it offers none."""
    module = _module(name)
    found: list[Sweep] = module.sweeps() if hasattr(module, "sweeps") else []
    return found
