"""Times of a kernel on the GPU, without the host's launches: a graph of calls, replayed between two events."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kernels.case import Case, Run

_GRAPH_S = 1e-3
_INPUT_SETS = 6


@dataclass(frozen=True, slots=True)
class Times:
    """Median, tenth and ninetieth percentile of the time of one call, over ``repeats`` samples of ``calls`` each."""

    median_s: float
    p10_s: float
    p90_s: float
    repeats: int
    calls: int


def input_sets(case: Case, device: torch.device) -> list[Run]:
    """Calls over different inputs, enough that a round of them is three times the cache, six at most."""
    cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    wanted = min(_INPUT_SETS, 1 + 3 * cache_bytes // max(case.bytes_moved, 1))
    return [case.prepare(device) for _ in range(wanted)]


def gpu_times(runs: Sequence[Run], repeats: int = 25) -> Times:
    """Time calls that rotate among ``runs``.

    The calls of a sample are captured in one graph of about a millisecond, so that launching is not timed. Raises what
    PyTorch raises for a call that cannot be captured, since a call that waits for the GPU has no such time.
    """
    for run in runs:
        run()
    torch.cuda.synchronize()
    once_s = _event_time_s(lambda: [run() for run in runs]) / len(runs)
    rounds = max(1, round(_GRAPH_S / max(once_s, 1e-6) / len(runs)))
    calls = rounds * len(runs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in range(calls):
            runs[call % len(runs)]()
    for _ in range(3):
        graph.replay()
    samples = np.array([_event_time_s(graph.replay) for _ in range(repeats)]) / calls
    median, low, high = np.quantile(samples, (0.5, 0.1, 0.9)).tolist()
    return Times(median, low, high, repeats, calls)


def host_times(runs: Sequence[Run], repeats: int = 5) -> Times:
    """Time calls by the host's clock: what there is for the interpreter."""
    samples = []
    for repeat in range(repeats):
        start = time.perf_counter()
        runs[repeat % len(runs)]()
        samples.append(time.perf_counter() - start)
    median, low, high = np.quantile(samples, (0.5, 0.1, 0.9)).tolist()
    return Times(median, low, high, repeats, 1)


def _event_time_s(run: Run) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3
