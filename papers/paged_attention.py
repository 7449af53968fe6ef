"""PagedAttention: KV memory in blocks as tokens need it, against memory that is reserved for a request's whole life."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from experiments.unpaged_memory.address_space import Buddy
from experiments.unpaged_memory.contiguous import (
    ContiguousKv,
    PagedKv,
    reserve_exact,
    reserve_longest,
    reserve_power_of_two,
)
from experiments.unpaged_memory.fragmentation import MemoryUse, replay_memory_use
from papers.harness.lengths import KINDS, quantiles
from papers.harness.simulating import merged, normalised_latency_s, poisson, run, sustained_rate
from papers.harness.study import Cell, Figures, Measured, Size, Study
from simcore.build.simulation import Simulation
from simcore.cost.term import StepCounts

CONTEXT, SLOTS, BLOCK = 2048, 15_700, 16
HOST_THEN = {"async_scheduling": False, "max_cudagraph_tokens": 1, "mixed_graphs": False, "compiled": False}
A100 = {"model": "opt-13b", "cluster": {"accelerator": "a100-sxm-40gb"}, "max_context_tokens": CONTEXT}
TODAY = {"model": "llama-3.1-8b", "max_context_tokens": 8192}
SETUPS: dict[str, dict[str, Any]] = {
    "published": A100,
    "Alpaca lengths": A100,
    "H100": {**TODAY, "cluster": {"accelerator": "h100-sxm"}},
    "B200": {**TODAY, "cluster": {"accelerator": "b200"}},
}
OF_THE_TIME = ("published", "Alpaca lengths")
LIMIT_S = {"published": 0.5, "Alpaca lengths": 0.1, "H100": 0.03, "B200": 0.03}
TIMES_REQUESTS = {"published": 1, "Alpaca lengths": 3, "H100": 2, "B200": 3}
"""So many times as many requests, since a queue takes longer to grow where requests are short or the GPU is quick."""
START_PER_S = {"published": 0.5, "Alpaca lengths": 8.0, "H100": 16.0, "B200": 32.0}
ORCA = {"engine": "orca", "scheduler": {"batching": {"name": "in-flight", "max_running_requests": 256}}}
OVERLOAD_PER_S = 8.0
"""More than any of them can serve, so that requests wait for memory; as in docs/results/memory.md."""
SYSTEMS: dict[str, dict[str, Any]] = {
    "vLLM": {
        "memory": {"prefix_caching": False},
        "scheduler": {"batching": {"name": "prefill-first", "max_batched_tokens": 2560}},
        "host": HOST_THEN,
    },
    "Orca (Oracle)": merged(ORCA, {"memory": {"reservation": "limit"}}),
    "Orca (Pow2)": merged(ORCA, {"memory": {"reservation": "limit"}}),
    "Orca (Max)": merged(ORCA, {"memory": {"reservation": "longest"}}),
    "FasterTransformer": {
        "engine": "orca",
        "memory": {"reservation": "longest"},
        "scheduler": {"batching": {"name": "static", "max_running_requests": SLOTS // CONTEXT}},
    },
    "vLLM today": {"memory": {"prefix_caching": False}},
}
RESERVATIONS = {
    "Orca (Oracle)": reserve_exact,
    "Orca (Pow2)": reserve_power_of_two,
    "Orca (Max)": reserve_longest(CONTEXT),
}


def requests_of(cell: Cell) -> tuple[np.ndarray[Any, Any], ...]:
    """Arrivals at one per second, prompts, outputs and the limits that the system's reservation goes by."""
    random = np.random.default_rng(cell.seed)
    name = "alpaca" if cell.setup == "Alpaca lengths" else "sharegpt-short"
    requests = cell.size.requests * TIMES_REQUESTS[cell.setup]
    arrival_s = np.cumsum(random.exponential(1.0, requests))
    prompt, output = (
        np.ceil(np.interp(random.random(requests), *quantiles(name, kind))).astype(np.int64) for kind in KINDS
    )
    limit = output
    if cell.system == "Orca (Pow2)":
        limit = np.minimum(2 ** np.ceil(np.log2(output)).astype(np.int64), CONTEXT - prompt)
    return arrival_s, prompt, output, limit


def measure(cell: Cell) -> Figures:
    """The rate that keeps the mean latency per output token of late requests; what KV memory then holds."""
    document = merged(SETUPS[cell.setup], SYSTEMS[cell.system])
    use = _memory_use(cell)
    if cell.setup in OF_THE_TIME:
        slots = SLOTS * (1 - use.external) if use is not None and cell.system in RESERVATIONS else SLOTS
        block = 1 if document.get("engine") == "orca" else BLOCK
        document = merged(document, {"memory": {"num_gpu_blocks": int(slots) // block + 1}})
    with TemporaryDirectory() as folder:
        columns = "arrival_s,prompt_tokens,output_tokens,max_output_tokens"
        rows = np.column_stack(requests_of(cell))
        np.savetxt(Path(folder) / "trace.csv", rows, "%.9f,%d,%d,%d", ",", header=columns, comments="")

        def excess(rate_per_s: float) -> float:
            named = {"max_output_tokens": "max_output_tokens"}
            workload = {"trace": "trace.csv", "format": "csv", "columns": named, "rate_scale": rate_per_s}
            result = run({**document, "workload": workload}, cell.seed, Path(folder))
            late = normalised_latency_s(result)[len(rows) // 2 :]  # by then a queue has grown, if it does
            return float(late.mean() / LIMIT_S[cell.setup])

        rate_per_s = sustained_rate(excess, START_PER_S[cell.setup], cell.size.precision)
    return {"rate_per_s": rate_per_s, "token states": 0.0 if use is None else use.token_states}


def _memory_use(cell: Cell) -> MemoryUse | None:
    """What KV memory holds while requests wait for it, as in figure 2; None where the paper shows none."""
    if cell.setup != "published" or cell.system not in (*RESERVATIONS, "vLLM"):
        return None
    paged = cell.system == "vLLM"
    memory = PagedKv(SLOTS, BLOCK) if paged else ContiguousKv(Buddy(SLOTS), RESERVATIONS[cell.system])
    arrival_s, prompt, output, _ = requests_of(cell)
    sent = zip((arrival_s / OVERLOAD_PER_S * 1e9).tolist(), prompt.tolist(), output.tolist(), strict=True)
    return replay_memory_use(sent, memory, _step_ns)


def _step_ns(tokens: int) -> float:
    return _prepared().cost.without_attention_ns(StepCounts(tokens, tokens, 0, tokens, tokens))


@cache
def _prepared() -> Simulation:
    one = {"name": "fixed", "tokens": 1}
    return Simulation.prepare(
        {**A100, "workload": {**poisson(1, 1.0), "prompt_tokens": one, "output_tokens": one}}, Path()
    )


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Figure 2, and sustained rates."""
    shown = ("Orca (Max)", "Orca (Pow2)", "Orca (Oracle)", "vLLM")
    states = [measured.mean("published", system, "token states") for system in shown]
    published = Series("token states", shown, [curves["token states"][system] for system in shown], published=True)
    systems = ("FasterTransformer", *shown)
    rates = [measured.mean("published", system, "rate_per_s") for system in systems]
    memory = [published, Series("token states", shown, states)]
    return [
        Chart("KV memory that holds tokens", "system", "share", memory, "bars"),
        Chart("Sustained rate", "system", "requests per second", [Series("ShareGPT", systems, rates)], "bars"),
    ]


STUDY = Study(
    cells={
        "published": ("vLLM", "Orca (Oracle)", "Orca (Pow2)", "Orca (Max)", "FasterTransformer"),
        "Alpaca lengths": ("vLLM", "Orca (Oracle)", "Orca (Max)"),
        "H100": ("vLLM today", "Orca (Oracle)", "Orca (Max)"),
        "B200": ("vLLM today", "Orca (Oracle)", "Orca (Max)"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=800, seeds=3, precision=1.12),
    smoke=Size(requests=200, seeds=1, precision=1.5),
)
