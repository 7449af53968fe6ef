"""How fast the kernels are, as fractions of what the GPU at hand reaches itself."""

from pathlib import Path

_HERE = Path(__file__).parent
_KERNELS = _HERE.parent.parent / "kernels"

MODULES = tuple(
    sorted(file.stem for file in _HERE.glob("*.py") if file.stem != "__init__" and (_KERNELS / file.name).exists())
)
"""The benchmark modules, each named after a kernel file."""
