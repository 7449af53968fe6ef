"""A Result made by hand: rows of requests and steps, and a summary that fits them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simcore.core.result import Result
from simcore.metrics.distribution import cumulative_points
from simcore.metrics.statistics import of_values

NAN = float("nan")
REQUEST = {
    "request_id": 0,
    "state": "finished",
    "reason": "",
    "tenant": "",
    "replica": 0,
    "prompt_tokens": 100,
    "output_tokens": 11,
    "arrival_s": 0.0,
    "first_scheduled_s": NAN,
    "first_token_s": NAN,
    "end_s": NAN,
    "preemptions": 0,
}
UNCHANGED = -1
STEP = {
    "replica": 0,
    "start_s": 0.0,
    "end_s": 0.0,
    "first_step_s": 0.0,
    "last_step_s": 0.0,
    "steps": 1,
    "prefill_tokens": 0,
    "decoding_requests": 0,
    "running_requests": 0,
    "waiting_requests": 0,
    "used_blocks": 0,
    "used_blocks_at_end": UNCHANGED,
    "context_tokens": 0,
    "preempted_requests": 0,
}


def columns(rows: list[dict[str, Any]], defaults: dict[str, Any]) -> dict[str, np.ndarray]:
    unknown = {name for row in rows for name in row} - set(defaults)
    assert not unknown, unknown
    return {
        name: np.array([row.get(name, default) for row in rows], dtype=np.array(default).dtype.type)
        for name, default in defaults.items()
    }


def finished_request(
    arrival_s: float, first_scheduled_s: float, first_token_s: float, end_s: float, **more: Any
) -> dict[str, Any]:
    times = {"first_scheduled_s": first_scheduled_s, "first_token_s": first_token_s, "end_s": end_s}
    return {"arrival_s": arrival_s, **times, **more}


def build_result(
    requests: list[dict[str, Any]] | dict[str, np.ndarray],
    steps: list[dict[str, Any]] | dict[str, np.ndarray],
    replicas: int = 1,
    blocks_per_replica: int = 100,
    scenario: dict[str, Any] | None = None,
    **summary: Any,
) -> Result:
    """A result of these rows (or columns); keywords replace whole entries of the summary."""
    table = columns(requests, REQUEST) if isinstance(requests, list) else dict(requests)
    step_table = columns(steps, STEP) if isinstance(steps, list) else dict(steps)
    at_end = step_table.setdefault("used_blocks_at_end", np.full(len(step_table["used_blocks"]), UNCHANGED))
    step_table["used_blocks_at_end"] = np.where(at_end == UNCHANGED, step_table["used_blocks"], at_end)
    for name in ("first_step_s", "last_step_s"):
        step_table.setdefault(name, step_table["end_s"] - step_table["start_s"])
    table["queue_s"] = table["first_scheduled_s"] - table["arrival_s"]
    table["ttft_s"] = table["first_token_s"] - table["arrival_s"]
    table["e2e_s"] = table["end_s"] - table["arrival_s"]
    table["e2e_s"][table["state"] != "finished"] = np.nan
    gaps = table["output_tokens"] - 1
    table["tpot_s"] = np.where(gaps > 0, (table["end_s"] - table["first_token_s"]) / np.maximum(gaps, 1), np.nan)
    return Result(
        scenario=scenario or default_scenario(replicas),
        summary={**default_summary(table, step_table, blocks_per_replica), **summary},
        requests=table,
        steps=step_table,
        token_gaps=cumulative_points(table["tpot_s"]),
    )


def default_scenario(replicas: int) -> dict[str, Any]:
    cluster = {
        "accelerator": "h100-sxm",
        "replicas": replicas,
        "tensor_parallel": 1,
        "routing": {"name": "round-robin"},
    }
    return {"model": "llama-3.1-8b", "engine": "vllm-v1", "seed": 7, "cluster": cluster}


def default_summary(requests: dict[str, np.ndarray], steps: dict[str, np.ndarray], blocks: int) -> dict[str, Any]:
    state = requests["state"]
    finished = state == "finished"
    measured_s = float(np.max(steps["end_s"], initial=0.0))
    reasons = requests["reason"][state == "rejected"].tolist()
    metrics = {name: of_values(requests[name][finished]) for name in ("ttft_s", "tpot_s", "e2e_s", "queue_s")}
    metrics["itl_s"] = of_values(requests["tpot_s"][finished])
    metrics["normalised_latency_s"] = of_values(requests["e2e_s"][finished] / requests["output_tokens"][finished])
    rates: dict[str, float | bool | None] = {
        "offered_requests_per_s": 0.2,
        "served_requests_per_s": 0.2,
        "keeps_up": True,
        "requests_per_s": finished.sum() / (measured_s or 1.0),
        "output_tokens_per_s": requests["output_tokens"][finished].sum() / (measured_s or 1.0),
        "total_tokens_per_s": (requests["output_tokens"] + requests["prompt_tokens"])[finished].sum()
        / (measured_s or 1.0),
    }
    if not measured_s:
        rates = dict.fromkeys(rates)
    return {
        "schema_version": 1,
        "counts": {
            "arrived": len(state),
            **{name: int((state == name).sum()) for name in ("finished", "rejected", "unfinished")},
            "rejected_by_reason": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
        },
        "window": {
            "start_s": 0.0,
            "end_s": measured_s,
            "measured_s": measured_s,
            "requests": len(state),
            "warmup_excluded": False,
            "drain_excluded": False,
            "definition": "All requests, from the start to the last step.",
        },
        "metrics": metrics,
        "throughput": {**rates, "goodput_requests_per_s": None, "ci": None},
        "slo": None,
        "kv": {
            "block_size_tokens": 16,
            "blocks_per_replica": blocks,
            "capacity_tokens_per_replica": 16 * blocks,
            "peak_used_blocks": int(np.max(steps["used_blocks"], initial=0)),
            "mean_used_share": None,
            "bytes_per_token": 131072,
            "source": "computed",
        },
        "preemptions": {"total": int(steps["preempted_requests"].sum()), "requests": 0},
        "utilisation": dict.fromkeys(
            (
                "busy_share",
                "mfu",
                "mbu",
                "host_share_of_busy",
                "mean_decode_batch",
                "mean_running_requests",
                "mean_waiting_requests",
            )
        ),
        "cost": {"usd_per_h": 3.0, "usd": None, "usd_per_million_output_tokens": None, "price_source": "a list price"},
        "pricing": {"shares": {"roofline": 1.0}, "outside_calibrated_range": 1.0, "note": "Priced by roofline alone."},
        "warnings": [],
        "notices": [],
        "run": {
            "wall_s": 0.12345,
            "simulated_s": measured_s,
            "requests_per_wall_s": 4321.0,
            "seed": 7,
            "versions": {"servetwin": "0.1.0", "numpy": "2.0.0"},
            "phases_wall_s": {"simulation": 0.1},
        },
    }


@pytest.fixture(scope="session")
def make_result() -> Callable[..., Result]:
    """``build_result``, as tests cannot import from here."""
    return build_result


@pytest.fixture(scope="session")
def two_replicas() -> Result:
    """Two replicas, 10 s, every number chosen to be checked by hand.

    Replica 0 runs from 0 s to 10 s without a break, replica 1 from 2.5 s to 5 s alone. A third request is rejected, a
    fourth unfinished.
    """
    requests = [
        finished_request(0.0, 0.0, 1.0, 10.0, request_id=0),
        finished_request(2.0, 2.5, 3.0, 5.0, request_id=1, replica=1, output_tokens=5),
        {"request_id": 2, "arrival_s": 4.0, "end_s": 4.0, "state": "rejected", "reason": "longer than <the> context"},
        {"request_id": 3, "arrival_s": 9.0, "state": "unfinished", "output_tokens": 0},
    ]
    steps = [
        {"start_s": 0.0, "end_s": 1.0, "prefill_tokens": 100, "running_requests": 1, "used_blocks": 7},
        {
            "start_s": 1.0,
            "end_s": 10.0,
            "steps": 9,
            "decoding_requests": 1,
            "running_requests": 1,
            "used_blocks": 8,
            "waiting_requests": 2,
            "context_tokens": 101,
        },
        {"replica": 1, "start_s": 2.5, "end_s": 3.0, "prefill_tokens": 100, "running_requests": 1, "used_blocks": 50},
        {
            "replica": 1,
            "start_s": 3.0,
            "end_s": 5.0,
            "steps": 4,
            "decoding_requests": 1,
            "running_requests": 3,
            "used_blocks": 60,
            "preempted_requests": 2,
        },
    ]
    return build_result(requests, steps, replicas=2)
