"""How fast blocks of keys and values are copied, and moved to the CPU's memory and back."""

import time
from collections.abc import Callable

import torch

from live.paging.kv_tensors import KVTensors

_BLOCKS = 16
_REPEATS = 5


def block_rates(kv: KVTensors, now_ns: Callable[[], int] = time.perf_counter_ns) -> dict[str, float]:
    """Bytes per second of ``copy`` and, where there are host blocks, of ``swap_out`` and ``swap_in``; medians."""
    count = min(_BLOCKS, kv.blocks // 2)
    first, second = list(range(count)), list(range(count, 2 * count))
    found = {"kv_copy_bytes_per_s": _rate(kv, count, lambda: kv.copy(first, second), now_ns)}
    hosted = min(count, kv.host_blocks)
    if hosted:
        blocks, host = first[:hosted], list(range(hosted))
        found["kv_swap_out_bytes_per_s"] = _rate(kv, hosted, lambda: kv.swap_out(blocks, host), now_ns)
        found["kv_swap_in_bytes_per_s"] = _rate(kv, hosted, lambda: kv.swap_in(host, blocks), now_ns)
    return found


def _rate(kv: KVTensors, blocks: int, action: Callable[[], None], now_ns: Callable[[], int]) -> float:
    on_gpu = kv.keys.is_cuda
    times = []
    for _ in range(_REPEATS):
        began = now_ns()
        action()
        if on_gpu:
            torch.cuda.synchronize(kv.keys.device)
        times.append((now_ns() - began) * 1e-9)
    return blocks * kv.block_bytes / max(sorted(times)[len(times) // 2], 1e-9)
