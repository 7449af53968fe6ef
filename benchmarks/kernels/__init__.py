"""How fast the kernels are, as fractions of what the GPU at hand reaches itself."""

MODULES = ("elementwise", "w4a16")
"""The benchmark modules, each named after a kernel file."""
