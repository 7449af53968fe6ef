"""The summary of a run: what ``summary.json`` holds."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.clock import to_s
from simcore.core.result import Columns
from simcore.core.token_gaps import CountedGaps
from simcore.cost.price_shares import RangeCounter
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.hardware import Accelerator
from simcore.metrics.confidence import LEVEL, SECTIONS, interval
from simcore.metrics.definitions import normalised_latency_s, prefix_hit_rate
from simcore.metrics.fairness import fairness
from simcore.metrics.objectives import kept_all, missed_any, objectives
from simcore.metrics.pricing import pricing_figures, pricing_warnings
from simcore.metrics.statistics import Statistics, of_gaps, of_values
from simcore.metrics.transfers import link_figures, swap_figures, tier_figures
from simcore.scenario import Scenario
from simcore.scheduling.offloading import Offloading
from simcore.service.pipeline import Pipeline

SCHEMA_VERSION = 1
_FINISHED_FOR_INTERVAL = 5 * SECTIONS
"""Fewer finished requests than this leave throughput without an interval."""
_WINDOW = (
    "from the end of the warm-up to the end of the run, {}; latencies of finished requests that arrived in it, gaps "
    "and throughput of tokens and requests that ended in it; counts, fairness, KV memory, preemptions, utilisation and "
    "cost are of the whole run"
)
_DRAINED = "its drain included"
_CUT_OFF = "which was cut off before all requests had drained"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the summary needs beside the tables; ``cut_off`` says that the run ended before all was done.

    ``measured_on`` names the machine whose times these are; None where they were simulated.
    """

    scenario: Scenario
    accelerator: Accelerator
    cost: StepCost
    total_blocks: int
    block_tables: int
    kv_bytes_per_token: int
    work: tuple[WorkCounter, ...]
    ranges: tuple[RangeCounter, ...]
    peak_used_blocks: int
    notices: tuple[str, ...]
    cut_off: bool
    simulation_wall_s: float
    offloadings: tuple[Offloading, ...] = ()
    transfers: Columns = field(default_factory=dict)
    pipelines: tuple[Pipeline, ...] = ()
    measured_on: str | None = None


def summarise(
    facts: RunFacts,
    requests: Columns,
    steps: Columns,
    gaps: Sequence[Sequence[CountedGaps]],
    all_gaps: CountedGaps,
    started: float,
) -> dict[str, Any]:
    """The summary of a run that began at ``started`` on the wall clock (``time.perf_counter``).

    ``gaps`` are the token gaps of each replica as chunks in order of time, ``all_gaps`` the same merged.
    """
    warmup_s = facts.scenario.measurement.warmup_s
    end_s = _end_s(facts, requests, steps)
    window = _Window(warmup_s, max(end_s - warmup_s, 0.0))
    within = _Selection.of(requests, facts.scenario, window)
    summary = {
        "schema_version": SCHEMA_VERSION,
        "counts": _counts(requests),
        "window": {
            "start_s": window.start_s,
            "end_s": window.start_s + window.length_s,
            "measured_s": window.length_s,
            "requests": int(within.measured.sum()),
            "warmup_excluded": warmup_s > 0,
            "drain_excluded": facts.cut_off,
            "definition": _WINDOW.format(_CUT_OFF if facts.cut_off else _DRAINED),
        },
        "metrics": _metrics(requests, within, of_gaps(gaps, all_gaps, _requests_with_gaps(requests, window))),
        "throughput": _throughput(requests, within, window),
        "slo": objectives(requests, facts.scenario, requests["arrival_s"] >= window.start_s, end_s),
        "fairness": fairness(requests, end_s, within.good, missed_any(requests, facts.scenario, end_s)),
        "kv": _kv(facts, requests, steps, end_s),
        "preemptions": {
            "total": int(steps["preempted_requests"].sum()),
            "requests": int((requests["preemptions"] > 0).sum()),
            **swap_figures(facts.offloadings),
        },
        "links": link_figures(facts.offloadings, facts.transfers, end_s),
        "utilisation": _utilisation(facts, requests, steps, end_s),
        "cost": _cost(facts, requests, end_s),
        "pricing": (pricing := pricing_figures(facts, steps)),
        "warnings": _warnings(facts, requests, pricing),
        "notices": list(facts.notices),
    }
    wall_s = perf_counter() - started
    summary["run"] = {
        "wall_s": wall_s,
        "simulated_s": end_s,
        "requests_per_wall_s": len(requests["request_id"]) / wall_s,
        "phases_wall_s": {"simulate": facts.simulation_wall_s, "summarise": wall_s - facts.simulation_wall_s},
        "seed": facts.scenario.seed,
        "versions": {
            "servetwin": version("servetwin"),
            "python": platform.python_version(),
            "simpy": version("simpy"),
            "numpy": version("numpy"),
        },
    }
    return summary


@dataclass(frozen=True, slots=True)
class _Window:
    start_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class _Selection:
    """Masks over the requests: finished ones that arrived in the window, that ended in it, and that kept all limits."""

    measured: np.ndarray[Any, np.dtype[np.bool_]]
    ended: np.ndarray[Any, np.dtype[np.bool_]]
    good: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def of(cls, requests: Columns, scenario: Scenario, window: _Window) -> "_Selection":
        finished = requests["state"] == "finished"
        measured = finished & (requests["arrival_s"] >= window.start_s)
        return cls(measured, finished & (requests["end_s"] > window.start_s), kept_all(requests, scenario))


def _end_s(facts: RunFacts, requests: Columns, steps: Columns) -> float:
    if facts.scenario.measurement.end_s is not None:
        return facts.scenario.measurement.end_s
    last_step_s = float(steps["end_s"].max()) if len(steps["end_s"]) else 0.0
    return max(last_step_s, float(requests["arrival_s"].max()) if len(requests["arrival_s"]) else 0.0)


def _counts(requests: Columns) -> dict[str, Any]:
    states, reasons = requests["state"], requests["reason"]
    by_reason = {str(reason): int((reasons == reason).sum()) for reason in np.unique(reasons) if reason}
    return {
        "arrived": len(states),
        **{state: int((states == state).sum()) for state in ("finished", "rejected", "unfinished")},
        "rejected_by_reason": by_reason,
    }


def _requests_with_gaps(requests: Columns, window: _Window) -> int:
    """Requests that got two tokens or more and were not done when the window began."""
    return int(((requests["output_tokens"] >= 2) & ~(requests["end_s"] <= window.start_s)).sum())


def _metrics(requests: Columns, within: _Selection, itl: Statistics) -> dict[str, Any]:
    measured = {name: requests[name][within.measured] for name in ("ttft_s", "tpot_s", "e2e_s", "queue_s")}
    metrics = {name: of_values(np.asarray(values, dtype=np.float64)) for name, values in measured.items()}
    per_token = normalised_latency_s(
        np.asarray(measured["e2e_s"], dtype=np.float64),
        np.asarray(requests["output_tokens"][within.measured], dtype=np.int64),
    )
    return {
        "ttft_s": metrics["ttft_s"],
        "tpot_s": metrics["tpot_s"],
        "itl_s": itl,
        "e2e_s": metrics["e2e_s"],
        "queue_s": metrics["queue_s"],
        "normalised_latency_s": of_values(per_token),
    }


def _throughput(requests: Columns, within: _Selection, window: _Window) -> dict[str, Any]:
    ended = within.ended
    amounts = {
        "requests_per_s": ended.astype(np.int64),
        "output_tokens_per_s": np.where(ended, requests["output_tokens"], 0),
        "total_tokens_per_s": np.where(ended, requests["prompt_tokens"] + requests["output_tokens"], 0),
        "goodput_requests_per_s": (ended & within.good).astype(np.int64),
    }
    if not window.length_s:
        return {**dict.fromkeys(amounts), "ci": None}
    edges = window.start_s + window.length_s * np.arange(1, SECTIONS) / SECTIONS
    section = np.searchsorted(edges, requests["end_s"][ended], side="left")
    figures: dict[str, Any] = {}
    intervals: dict[str, Any] = {"level": LEVEL, "method": f"batch means over {SECTIONS} equal spans of time"}
    for name, amount in amounts.items():
        per_section = np.bincount(section, weights=amount[ended], minlength=SECTIONS)
        figures[name] = float(amount.sum() / window.length_s)
        rates = (per_section / (window.length_s / SECTIONS)).tolist()
        intervals[name] = interval(figures[name], rates) if ended.sum() >= _FINISHED_FOR_INTERVAL else None
    return {**figures, "ci": intervals}


def _kv(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    scenario = facts.scenario
    block_size = scenario.memory.block_size_tokens
    # Within a row blocks grow about evenly.
    mean_blocks = (steps["used_blocks"] + steps["used_blocks_at_end"]) / 2
    held = float((mean_blocks * _until_next_s(steps)).sum())
    all_blocks = facts.total_blocks * scenario.cluster.replicas
    admitted = requests["first_scheduled_s"] >= scenario.measurement.warmup_s
    hit_rate = prefix_hit_rate(requests["cached_tokens"][admitted], requests["prompt_tokens"][admitted])
    return {
        "block_size_tokens": block_size,
        "blocks_per_replica": facts.total_blocks,
        "capacity_tokens_per_replica": facts.total_blocks // facts.block_tables * block_size,
        "bytes_per_token": facts.kv_bytes_per_token,
        "peak_used_blocks": facts.peak_used_blocks,
        "mean_used_share": held / (all_blocks * end_s) if end_s else None,
        "prefix_hit_rate": hit_rate if scenario.memory.prefix_caching else None,
        "tiers": tier_figures(facts.offloadings, requests, admitted),
        "source": "computed" if scenario.memory.num_gpu_blocks is None else "given",
    }


def _in_system_s(requests: Columns, end_s: float) -> float:
    """Request-seconds between arrival and end of all requests; one that is rejected on arrival adds none."""
    until = np.where(np.isnan(requests["end_s"]), end_s, requests["end_s"])
    return float((until - requests["arrival_s"]).sum())


def _until_next_s(steps: Columns) -> NDArray[np.float64]:
    """What each row lasts, up to the next of its replica at most, which begins before where several are in flight."""
    order = np.lexsort((steps["start_s"], steps["replica"]))
    start_s, end_s, replica = (steps[name][order] for name in ("start_s", "end_s", "replica"))
    until_s = end_s.copy()
    follows = replica[1:] == replica[:-1]
    until_s[:-1][follows] = np.minimum(end_s[:-1], start_s[1:])[follows]
    lasts_s: NDArray[np.float64] = np.empty_like(until_s)
    lasts_s[order] = until_s - start_s
    return lasts_s


def _utilisation(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    time_s = end_s * len(facts.work)
    span_s = steps["end_s"] - steps["start_s"]
    busy_s = float(span_s.sum())
    step_count = sum(work.steps for work in facts.work)
    decode_tokens = int((steps["decoding_requests"] * steps["steps"]).sum())
    figures: dict[str, Any] = {
        "steps": step_count,
        "prefill_tokens": int(steps["prefill_tokens"].sum()),
        "decode_tokens": decode_tokens,
    }
    shares = ("busy_share", "host_share_of_busy", "mfu", "mbu", "mean_decode_batch")
    if not step_count:
        return figures | dict.fromkeys((*shares, "mean_running_requests", "mean_waiting_requests"))
    priced = facts.pipelines[0].cost if facts.pipelines else facts.cost
    peak_flops = facts.cost.peak_flops_per_s * time_s
    peak_bytes = facts.accelerator.memory_bandwidth_bytes_per_s * time_s
    running_s = float((steps["running_requests"] * span_s).sum())
    return figures | {
        "busy_share": busy_s / time_s,
        "host_share_of_busy": sum(work.host_s(priced) for work in facts.work) / busy_s,
        "mfu": sum(work.flops(facts.cost) for work in facts.work) / peak_flops,
        "mbu": sum(work.moved_bytes(facts.cost) for work in facts.work) / peak_bytes,
        "mean_decode_batch": decode_tokens / step_count,
        "mean_running_requests": running_s / end_s,
        "mean_waiting_requests": max(_in_system_s(requests, end_s) - running_s, 0.0) / end_s,
        **_pipeline(facts.pipelines, end_s),
    }


def _pipeline(pipelines: Sequence[Pipeline], end_s: float) -> dict[str, Any]:
    """Means over replicas and stages, where there are several."""
    if not pipelines:
        return {}
    stage_s = end_s * sum(len(pipeline.lanes) for pipeline in pipelines)
    bubbles = [pipeline.bubble_share for pipeline in pipelines]
    return {
        "stage_computing_share": to_s(sum(pipeline.computed_ns for pipeline in pipelines)) / stage_s,
        "stage_sending_share": to_s(sum(pipeline.sent_ns for pipeline in pipelines)) / stage_s,
        "bubble_share": sum(bubbles) / len(bubbles),
    }


def _cost(facts: RunFacts, requests: Columns, end_s: float) -> dict[str, Any]:
    cluster = facts.scenario.cluster
    stated = cluster.price_usd_per_h is not None
    price = cluster.price_usd_per_h if stated else facts.accelerator.price_usd_per_h
    assert price is not None
    usd_per_h = price * cluster.replicas * cluster.devices_per_replica
    usd = usd_per_h * end_s / 3600
    output_tokens = int(requests["output_tokens"].sum())
    return {
        "usd_per_h": usd_per_h,
        "usd": usd,
        "usd_per_million_output_tokens": usd / output_tokens * 1e6 if output_tokens else None,
        "price_source": "the scenario" if stated else f"list price of {facts.accelerator.price_date}",
    }


def _warnings(facts: RunFacts, requests: Columns, pricing: dict[str, Any]) -> list[str]:
    warnings = pricing_warnings(pricing)
    warmup_s = facts.scenario.measurement.warmup_s
    finished = requests["state"] == "finished"
    if warmup_s and finished.any() and not (requests["arrival_s"][finished] >= warmup_s).any():
        warnings.append(f"No finished request arrived after the warm-up of {warmup_s:g} s, so no latency is measured.")
    unfinished = int((requests["state"] == "unfinished").sum())
    if unfinished:
        warnings.append(
            f"{unfinished} requests were unfinished when the run was cut off; latencies are of finished ones."
        )
    rejected = int((requests["state"] == "rejected").sum())
    if rejected:
        warnings.append(
            f"{rejected} of {len(requests['state'])} requests were rejected; latencies are of finished ones."
        )
    return warnings
