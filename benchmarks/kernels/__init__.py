"""How fast the kernels are, as fractions of what the GPU at hand reaches itself."""
