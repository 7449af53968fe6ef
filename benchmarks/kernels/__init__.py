"""How fast the kernels are, as fractions of what the GPU at hand reaches itself."""

MODULES = (
    "elementwise",
    "flash_prefill",
    "gemm",
    "kv_copy",
    "mixed_attention",
    "mla_decode",
    "moe",
    "paged_decode",
    "quantise_rows",
    "rms_norm",
    "rope",
    "sampling",
    "speculative",
    "token_probabilities",
    "w4a16",
    "w8a8",
)
"""The benchmark modules, each named after a kernel file."""
