"""No device is faster than its datasheet; small launches may be, out of its cache."""

import numpy as np
import pytest

from calibrate.plausibility import impossible
from calibrate.samples import SampleTable
from simcore.hardware import load_accelerator

H200 = load_accelerator("h200-sxm")


def made(kind, latency_s, **columns):
    arrays = {name: np.array(values) for name, values in columns.items()}
    lines = np.arange(1, len(latency_s) + 1)
    return SampleTable(kind, "h200-sxm", "own", "1", arrays, np.array(latency_s), "x", lines)


@pytest.mark.parametrize(
    ("dtype", "peak"), [("bf16", "bf16"), ("int4", "bf16"), ("fp8-block", "fp8"), ("int8", "int8")]
)
def test_products_are_held_to_the_peak_they_are_multiplied_at(dtype, peak):
    least_s = 2 * 4096**3 / H200.peak_flops_per_s[peak]
    shape = {name: [4096] * 3 for name in ("tokens", "n", "k")}
    samples = made("gemm", [0.9 * least_s, 0.97 * least_s, 2 * least_s], dtype=[dtype] * 3, **shape)
    assert impossible(samples, H200).tolist() == [True, False, False]


def test_decodes_are_held_to_memory_where_the_cache_does_not_hold_them():
    """64 requests of 8 KV heads of 128 at 2,048 tokens read 537 MB, one of 512 reads 2 MB."""
    least_s = 2 * 2 * 8 * 128 * 64 * 2048 / H200.memory_bandwidth_bytes_per_s
    shape = {"heads": [32] * 4, "kv_heads": [8] * 4, "head_dim": [128] * 4}
    columns = {
        "kv_dtype": ["bf16"] * 4,
        "window": [0, 0, 1024, 0],
        "batch": [64, 64, 64, 1],
        "context": [2048] * 3 + [512],
    }
    samples = made("generation_attention", [0.9 * least_s, least_s, 0.55 * least_s, 1e-9], **columns, **shape)
    assert impossible(samples, H200).tolist() == [True, False, False, False]
    assert not impossible(made("layer", [1e-12]), H200).any()
