"""Measurements that no device could have made: faster than its datasheet lets it compute or read memory."""

import numpy as np
from numpy.typing import NDArray

from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import generation_work
from simcore.hardware import Accelerator

_MARGIN = 1.05
_CACHED = 4
"""Times the last cache that a launch has to read before memory, and not the cache, is what it waits for."""
_COMPUTED_AS = {"fp8-block": "fp8", "nvfp4": "fp4", "int4": "bf16"}


def impossible(samples: SampleTable, accelerator: Accelerator) -> NDArray[np.bool_]:
    """The rows of GEMMs and decode attention that are a twentieth faster than the datasheet, or more."""
    found = np.zeros(len(samples), dtype=bool)
    columns = samples.columns
    if samples.kind == "gemm":
        flops = 2.0 * columns["tokens"] * columns["n"] * columns["k"]
        peaks = accelerator.peak_flops_per_s
        for dtype in np.unique(columns["dtype"]):
            peak = peaks.get(_COMPUTED_AS.get(str(dtype), str(dtype)))
            if peak is not None:
                found |= (columns["dtype"] == dtype) & (flops / samples.latency_s > _MARGIN * peak)
    if samples.kind == "generation_attention":
        heads, kv_heads, head_dim, batch, context = (
            columns[name] * 1.0 for name in ("heads", "kv_heads", "head_dim", "batch", "context")
        )
        for kv_dtype, window in {(str(a), int(b)) for a, b in zip(columns["kv_dtype"], columns["window"], strict=True)}:
            _, moved = generation_work(kv_dtype, heads, kv_heads, head_dim, batch, context, window)
            own = (columns["kv_dtype"] == kv_dtype) & (columns["window"] == window)
            rate = moved / samples.latency_s
            beyond = moved > _CACHED * accelerator.l2_bytes
            found |= own & beyond & (rate > _MARGIN * accelerator.memory_bandwidth_bytes_per_s)
    return found
