"""A measured run with every request, repeated: the same arrivals and lengths in, latencies and series compared."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bands.run import run_with_bands
from fidelity.case import Refusal
from fidelity.figures import bands
from fidelity.known_names import known_names
from fidelity.load_regimes import REGIMES, regimes_of
from fidelity.machine import kernels_of, pcie_access
from fidelity.request_runs import REQUESTS, EngineArguments, RequestRun
from fidelity.run_names import is_moe
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.core.result import Columns, Result
from simcore.hardware import load_accelerator
from simcore.models import load_model

Float64Array = NDArray[np.float64]

LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
STATISTICS = {"mean": None, "p50": 50.0, "p90": 90.0, "p99": 99.0}
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "auto": "auto", "bf16": "bf16", "fp16": "fp16"}
_KV_DTYPES = {"auto": "bf16", "fp8": "fp8", "fp8_e4m3": "fp8", "bfloat16": "bf16"}
_ENOUGH_FOR_P99 = 64
"""Requests below which a 99th percentile says nothing."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of ``requests`` requests, measured and simulated; ``regime`` is "all" or one of ``REGIMES``.

    ``band`` is the uncertainty band, where the run has one of this figure.
    """

    regime: str
    metric: str
    statistic: str
    requests: int
    measured: float
    simulated: float
    band: tuple[float, float] | None = None

    @property
    def error(self) -> float:
        """(simulated - measured) / measured."""
        return self.simulated / self.measured - 1


@dataclass(frozen=True, slots=True)
class SeriesCompared:
    """One quantity over time; ``mean_difference`` is the mean absolute difference over the measured peak."""

    quantity: str
    time_s: Float64Array
    measured: Float64Array
    simulated: Float64Array

    @property
    def mean_difference(self) -> float:
        """Mean absolute difference over the measured peak."""
        return float(np.abs(self.simulated - self.measured).mean() / self.measured.max())


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run and what its repetition came to; ``ttft_s`` and so on are by request, in order of arrival."""

    run: RequestRun
    labels: dict[str, str]
    figures: tuple[Compared, ...]
    series: tuple[SeriesCompared, ...]
    simulated: dict[str, Float64Array]


def replay(run: RequestRun, replays: int = 0, jobs: int | None = None) -> Replayed | Refusal:
    """Simulate a measured run, with bands where replays are asked for, or say why that cannot be done."""
    document = _document(run)
    name = run.folder.name
    if isinstance(document, str):
        return Refusal(name, _labels(run), document)
    try:
        result = run_with_bands(Simulation.prepare(document, Path()), replays, jobs=jobs)
    except ServetwinError as error:
        return Refusal(name, _labels(run), str(error))
    if not (result.requests["state"] == "finished").all():
        return Refusal(name, _labels(run), "requests are longer than memory or context allows")
    simulated = {latency: np.asarray(result.requests[latency], dtype=np.float64) for latency in LATENCIES}
    return Replayed(run, _labels(run), tuple(_figures(run, result)), tuple(_series(run, result)), simulated)


def _labels(run: RequestRun) -> dict[str, str]:
    names = known_names()
    return {
        "run": run.folder.name,
        "engine": f"vLLM {run.meta.vllm_version}",
        "model": names.models.get(run.meta.model, run.meta.model),
        "accelerator": names.accelerators.get(run.hardware, run.hardware),
        "tensor_parallel": str(run.meta.engine_kwargs.tensor_parallel_size),
    }


def _document(run: RequestRun) -> dict[str, Any] | str:
    names, meta = known_names(), run.meta
    arguments = meta.engine_kwargs
    if meta.model not in names.models:
        return f"unknown model {meta.model}"
    if run.hardware not in names.accelerators:
        return f"unknown accelerator {run.hardware}"
    split = _split(arguments, has_experts=is_moe(names.models[meta.model]))
    if isinstance(split, str):
        return split
    if arguments.dtype not in _DTYPES:
        return f"precision {arguments.dtype}"
    if arguments.kv_cache_dtype not in _KV_DTYPES:
        return f"KV precision {arguments.kv_cache_dtype}"
    groups = split.get("data_parallel", 1)
    limits = {
        "max_batched_tokens": arguments.max_num_batched_tokens,
        "max_running_requests": arguments.max_num_seqs,
    }
    accelerator, model = names.accelerators[run.hardware], names.models[meta.model]
    document: dict[str, Any] = {
        "model": model,
        "engine": "vllm-v1",
        "cluster": {
            "accelerator": accelerator,
            **split,
            "pcie": pcie_access(load_accelerator(accelerator), run.link_bytes_per_s),
        },
        "pricing": {"profile": kernels_of(accelerator, "vllm", meta.vllm_version, load_model(model))},
        "precision": {"weights": _DTYPES[arguments.dtype], "kv_cache": _KV_DTYPES[arguments.kv_cache_dtype]},
        "scheduler": {"batching": {name: groups * limit for name, limit in limits.items() if limit is not None}},
        "memory": {
            "block_size_tokens": meta.kv_cache.block_size,
            "gpu_memory_utilization": meta.kv_cache.gpu_memory_utilization,
            "prefix_caching": meta.kv_cache.enable_prefix_caching,
        },
        "workload": {
            "trace": str((run.folder / REQUESTS).absolute()),
            "format": "jsonl",
            "columns": {
                "arrival": "arrival_time",
                "prompt_tokens": "input_toks",
                "output_tokens": "output_toks",
            },
            "sort": True,
        },
    }
    if meta.kv_cache.num_gpu_blocks is not None:
        document["memory"]["num_gpu_blocks"] = meta.kv_cache.num_gpu_blocks
    if arguments.max_model_len is not None:
        document["max_context_tokens"] = arguments.max_model_len
    return document


def _split(arguments: EngineArguments, has_experts: bool) -> dict[str, int] | str:
    """How the accelerators were used, as fields of ``cluster``, or what of it is not simulated.

    Copies of a model without experts are replicas, which vLLM gives requests in turn or to whichever has fewest.
    """
    tensor, data = arguments.tensor_parallel_size, arguments.data_parallel_size
    if not has_experts:
        return {"tensor_parallel": tensor, "replicas": data}
    if not arguments.enable_expert_parallel:
        return "data parallelism whose experts all ranks share" if data > 1 else {"tensor_parallel": tensor}
    return {"tensor_parallel": tensor, "data_parallel": data, "expert_parallel": tensor * data}


def _figures(run: RequestRun, result: Result) -> list[Compared]:
    regimes = regimes_of(run)
    groups = {"all": np.ones(len(regimes), dtype=bool)}
    groups |= {name: regimes == place for place, name in enumerate(REGIMES) if (regimes == place).any()}
    of_all = bands(result, [f"{metric}.{statistic}" for metric in LATENCIES for statistic in STATISTICS])
    found = []
    for group, chosen in groups.items():
        for metric in LATENCIES:
            measured, simulated = getattr(run, metric)[chosen], result.requests[metric][chosen]
            both = np.isfinite(measured) & np.isfinite(simulated)
            count = int(both.sum())
            for statistic, percent in STATISTICS.items():
                if count and not (percent == STATISTICS["p99"] and count < _ENOUGH_FOR_P99):
                    before, after = (_statistic(values[both], percent) for values in (measured, simulated))
                    band = of_all.get(f"{metric}.{statistic}") if group == "all" else None
                    found.append(Compared(group, metric, statistic, count, before, after, band))
    tokens = int(run.output_tokens.sum())
    lasted_s = float(run.last_token_s.max()), float(result.requests["end_s"].max() - result.requests["arrival_s"].min())
    before, after = (tokens / time_s for time_s in lasted_s)
    found.append(Compared("all", "output_tokens_per_s", "mean", len(regimes), before, after))
    return found


def _statistic(values: Float64Array, percent: float | None) -> float:
    return float(values.mean() if percent is None else np.percentile(values, percent))


def _series(run: RequestRun, result: Result) -> list[SeriesCompared]:
    if result.scenario["cluster"]["replicas"] > 1:
        return []  # of all replicas together nothing was recorded
    time_s = run.series.time_s
    steps, requests = result.steps, result.requests
    place = np.searchsorted(steps["start_s"], time_s, side="right") - 1
    busy = (place >= 0) & (time_s < steps["end_s"][place.clip(min=0)])
    row = place.clip(min=0)
    running = np.where(busy, steps["running_requests"][row], 0)
    arrived = np.searchsorted(np.sort(requests["arrival_s"]), time_s, side="right")
    ended = np.searchsorted(np.sort(requests["end_s"]), time_s, side="right")
    waiting = np.maximum(arrived - ended - running, 0)
    found = [
        SeriesCompared("running requests", time_s, run.series.running, running.astype(np.float64)),
        SeriesCompared("waiting requests", time_s, run.series.waiting, waiting.astype(np.float64)),
    ]
    if run.series.kv_used_share is not None:
        used = np.where(busy, _used_blocks(steps, row, time_s), 0)
        share = used / result.summary["kv"]["blocks_per_replica"]
        found.append(SeriesCompared("KV memory used", time_s, run.series.kv_used_share, share))
    return [series for series in found if series.measured.max() > 0]


def _used_blocks(steps: Columns, row: NDArray[np.intp], time_s: Float64Array) -> Float64Array:
    """Blocks grow about evenly within a row of steps."""
    start, end = steps["start_s"][row], steps["end_s"][row]
    share = ((time_s - start) / (end - start)).clip(0, 1)
    used: Float64Array = steps["used_blocks"][row] * (1 - share) + steps["used_blocks_at_end"][row] * share
    return used
