"""What each pool of a cluster did: the section ``pools`` of a summary."""

from typing import Any

from simcore.core.result import Columns
from simcore.metrics.arrays import Mask
from simcore.metrics.fleets import fleet_figures
from simcore.metrics.kv_memory import kv_figures
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.metrics.statistics import brief
from simcore.metrics.utilisation import utilisation

_LATENCIES = ("ttft_s", "tpot_s", "e2e_s")


def pool_figures(facts: RunFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    """By name of the pool; nothing where no pools are stated.

    A request that is handed over counts in both of its pools. Latencies are of those that arrived after the warm-up.
    """
    return {pool.name: _figures(facts, pool, requests, steps, end_s) for pool in facts.pools if pool.name}


def _figures(facts: RunFacts, pool: PoolFacts, requests: Columns, steps: Columns, end_s: float) -> dict[str, Any]:
    own = pool.of_pool(requests)
    if "prefill_replica" in requests:
        own = own | pool.of_pool({"replica": requests["prefill_replica"]})
    own_requests, own_steps = _rows(requests, own), _rows(steps, pool.of_pool(steps))
    alone, cluster = facts.of(pool), pool.scenario.cluster
    arrived = own_requests["arrival_s"] >= facts.scenario.measurement.warmup_s
    used = utilisation(alone, own_requests, own_steps, end_s)
    if pool.role != "mixed":
        used["mean_waiting_requests"] = None  # requests are elsewhere for part of their time
    figures = {
        "first_replica": pool.first_replica,
        "replicas": pool.replicas,
        "accelerator": pool.accelerator.name,
        "devices_per_replica": cluster.devices_per_replica,
        "role": pool.role,
        "engine": pool.scenario.engine,
        "requests": len(own_requests["request_id"]),
        "finished": int((own_requests["state"] == "finished").sum()),
        **{name: brief(own_requests[name][arrived]) for name in _LATENCIES},
        "utilisation": used,
        "kv": kv_figures(alone, own_requests, own_steps, end_s),
        "usd_per_h": alone.usd_per_h(end_s),
        "usd": alone.usd(0.0, end_s),
    }
    return figures if alone.fixed else {**figures, "scaling": fleet_figures(alone, end_s)}


def _rows(columns: Columns, own: Mask) -> Columns:
    return {name: column[own] for name, column in columns.items()}
