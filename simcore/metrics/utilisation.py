"""How busy replicas were, and with what."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from simcore.core.clock import to_s
from simcore.core.result import Columns
from simcore.metrics.run_facts import RunFacts
from simcore.service.pipeline import Pipeline


def utilisation(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    """The section ``utilisation`` of a summary."""
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


def _in_system_s(requests: Columns, end_s: float) -> float:
    """Request-seconds between arrival and end of all requests; one that is rejected on arrival adds none."""
    until = np.where(np.isnan(requests["end_s"]), end_s, requests["end_s"])
    return float((until - requests["arrival_s"]).sum())
