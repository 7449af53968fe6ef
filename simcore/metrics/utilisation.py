"""How busy replicas were, and with what."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simcore.core.clock import to_s
from simcore.core.result import Columns
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.service.pipeline import Pipeline


def utilisation(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    """The section ``utilisation`` of a summary."""
    work = [each for pool in facts.pools for each in pool.work]
    time_s = end_s * sum(pool.batches for pool in facts.pools)
    if not facts.fixed:
        time_s = sum(pool.replica_s(end_s) for pool in facts.pools)
    span_s = steps["end_s"] - steps["start_s"]
    busy_s = float(span_s.sum())
    step_count = sum(each.steps for each in work)
    decode_tokens = int((steps["decoding_requests"] * steps["steps"]).sum())
    figures: dict[str, Any] = {
        "steps": step_count,
        "prefill_tokens": int(steps["prefill_tokens"].sum()),
        "decode_tokens": decode_tokens,
    }
    shares = ("busy_share", "host_share_of_busy", "mfu", "mbu", "mean_decode_batch")
    if not step_count:
        return figures | dict.fromkeys((*shares, "mean_running_requests", "mean_waiting_requests"))
    running_s = float((steps["running_requests"] * span_s).sum())
    return figures | {
        "busy_share": busy_s / time_s,
        "host_share_of_busy": sum(each.host_s(pool.priced) for pool in facts.pools for each in pool.work) / busy_s,
        "mfu": _done(facts, lambda pool: sum(each.flops(pool.cost) for each in pool.work))
        / _possible(facts, end_s, lambda pool: pool.cost.peak_flops_per_s),
        "mbu": _done(facts, lambda pool: sum(each.moved_bytes(pool.cost) for each in pool.work))
        / _possible(facts, end_s, lambda pool: pool.accelerator.memory_bandwidth_bytes_per_s),
        "mean_decode_batch": decode_tokens / step_count,
        "mean_running_requests": running_s / end_s,
        "mean_waiting_requests": max(_in_system_s(requests, end_s) - running_s, 0.0) / end_s,
        **_pipeline([pipeline for pool in facts.pools for pipeline in pool.pipelines], end_s),
    }


def _done(facts: RunFacts, of_pool: Callable[[PoolFacts], float]) -> float:
    return sum(of_pool(pool) for pool in facts.pools)


def _possible(facts: RunFacts, end_s: float, peak_per_s: Callable[[PoolFacts], float]) -> float:
    """What all replicas could have done at their peaks."""
    return sum(
        peak_per_s(pool) * (end_s * pool.batches if pool.fleet is None else pool.replica_s(end_s))
        for pool in facts.pools
    )


def _pipeline(pipelines: Sequence[Pipeline], end_s: float) -> dict[str, Any]:
    """Means over replicas and stages, where there are several."""
    if not pipelines:
        return {}
    stage_s = end_s * sum(len(pipeline.batches) for pipeline in pipelines)
    bubbles = [pipeline.bubble_share for pipeline in pipelines]
    return {
        "stage_computing_share": to_s(sum(pipeline.computed_ns for pipeline in pipelines)) / stage_s,
        "stage_sending_share": to_s(sum(pipeline.sent_ns for pipeline in pipelines)) / stage_s,
        "bubble_share": sum(bubbles) / len(bubbles),
    }


def _in_system_s(requests: Columns, end_s: float) -> float:
    """Request-seconds between arrival and end of all requests; one that is rejected on arrival adds none."""
    until = np.where(np.isnan(requests["end_s"]), end_s, requests["end_s"])
    return float((until - requests["arrival_s"]).sum())
