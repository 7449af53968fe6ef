"""What each pool of a cluster did: the section ``pools`` of a summary."""

from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.kv_memory import kv_figures
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.metrics.utilisation import utilisation

_LATENCIES = ("ttft_s", "tpot_s", "e2e_s")


def pool_figures(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    """By name of the pool; nothing where no pools are stated.

    Requests count where they ended. Latencies are of those that arrived after the warm-up.
    """
    return {pool.name: _figures(facts, pool, requests, steps, end_s) for pool in facts.pools if pool.name}


def _figures(facts: RunFacts, pool: PoolFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    own_requests, own_steps = _rows(requests, pool), _rows(steps, pool)
    alone, cluster = facts.of(pool), pool.scenario.cluster
    arrived = own_requests["arrival_s"] >= facts.scenario.measurement.warmup_s
    return {
        "first_replica": pool.first_replica,
        "replicas": pool.replicas,
        "accelerator": pool.accelerator.name,
        "devices_per_replica": cluster.devices_per_replica,
        "engine": pool.scenario.engine,
        "requests": len(own_requests["request_id"]),
        "finished": int((own_requests["state"] == "finished").sum()),
        **{name: _latency(own_requests[name][arrived]) for name in _LATENCIES},
        "utilisation": utilisation(alone, own_requests, own_steps, end_s),
        "kv": kv_figures(alone, own_requests, own_steps, end_s),
        "usd_per_h": pool.usd_per_h,
        "usd": pool.usd_per_h * end_s / 3600,
    }


def _rows(columns: Columns, pool: PoolFacts) -> Columns:
    own = pool.of_pool(columns)
    return {name: column[own] for name, column in columns.items()}


def _latency(values_s: Float64Array) -> dict[str, float | None]:
    known = values_s[~np.isnan(values_s)]
    if not len(known):
        return {"mean": None, "p50": None, "p99": None}
    p50, p99 = np.percentile(known, [50, 99]).tolist()
    return {"mean": float(known.mean()), "p50": p50, "p99": p99}
