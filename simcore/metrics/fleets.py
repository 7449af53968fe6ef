"""Replicas that come and go: their seconds, what these cost, and the section ``scaling`` of a summary."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from simcore.core.clock import NS_PER_S, to_s
from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.metrics.statistics import brief
from simcore.recording.fleet_log import PHASES, SERVING, STARTING, WAKING, FleetLog, PhaseRow


def fleet_table(pools: Sequence[PoolFacts], end_s: float) -> Columns:
    """One row per phase of a replica, in order of time; what the end of the run cut off lasts until then.

    Replicas that are there for good serve throughout.
    """
    rows = [row for pool in pools for row in _phases(pool) if to_s(row.start_ns) <= end_s]
    rows.sort(key=lambda row: (row.start_ns, row.replica))
    return {
        "replica": np.array([row.replica for row in rows], dtype=np.int64),
        "phase": np.array([row.phase for row in rows], dtype=np.str_),
        "start_s": np.array([row.start_ns for row in rows], dtype=np.int64) / NS_PER_S,
        "end_s": np.array([_end_s(row, end_s) for row in rows], dtype=np.float64),
    }


def mean_replicas(fleet: Columns, end_s: float) -> float | None:
    """Replicas that take requests, averaged over a run."""
    serving = fleet["phase"] == SERVING
    return float((fleet["end_s"] - fleet["start_s"])[serving].sum()) / end_s if end_s else None


def _phases(pool: PoolFacts) -> Sequence[PhaseRow]:
    if pool.fleet is not None:
        return pool.fleet.phases
    return [PhaseRow(pool.first_replica + number, SERVING, 0) for number in range(pool.replicas)]


def replicas_by_span(log: FleetLog, phases: Collection[str], edges_s: Float64Array) -> Float64Array:
    """The replicas in some phases, averaged between each two successive edges."""
    found = np.zeros(len(edges_s) - 1)
    for row in log.phases:
        if row.phase in phases:
            start_s, end_s = to_s(row.start_ns), _end_s(row, float(edges_s[-1]))
            found += np.clip(np.minimum(edges_s[1:], end_s) - np.maximum(edges_s[:-1], start_s), 0.0, None)
    means: Float64Array = found / np.diff(edges_s)
    return means


def fleet_figures(facts: RunFacts, end_s: float) -> dict[str, Any]:
    """The section ``scaling`` of a summary: of pools whose replicas come and go, together.

    The fewest and the most that served are of all pools.
    """
    pools = [pool for pool in facts.pools if pool.fleet is not None]
    there = sum(pool.replicas for pool in facts.pools if pool.fleet is None)
    logs = [pool.fleet for pool in pools if pool.fleet is not None]
    begun = [row for log in logs for row in log.phases if to_s(row.start_ns) <= end_s]
    changed = [decision for log in logs for decision in log.decisions if decision.target != decision.present]
    reclaims = [reclaim for log in logs for reclaim in log.reclaims if not reclaim.void]
    cold = [row for row in begun if row.phase == STARTING and row.start_ns > 0]
    return {
        "least_replicas": there + _extreme(logs, end_s, min),
        "most_replicas": there + _extreme(logs, end_s, max),
        "starts": len(cold),
        "wakes": sum(row.phase == WAKING for row in begun),
        "start_s": brief(np.array([to_s(row.end_ns - row.start_ns) for row in cold if row.end_ns is not None])),
        "instance_s": {phase: sum(log.seconds_in([phase], 0.0, end_s) for log in logs) for phase in PHASES},
        "decisions": sum(len(log.decisions) for log in logs),
        "decisions_out": sum(decision.target > decision.present for decision in changed),
        "decisions_in": sum(decision.target < decision.present for decision in changed),
        "reclaimed": len(reclaims),
        "interrupted_requests": sum(reclaim.interrupted for reclaim in reclaims),
        "given_up_requests": sum(reclaim.given_up for reclaim in reclaims),
        "usd": sum(pool.usd(0.0, end_s) for pool in pools),
    }


def _extreme(logs: Sequence[FleetLog], end_s: float, which: Any) -> int:
    """The least or the most replicas that served at once, once all that happens in a nanosecond has happened."""
    changes: dict[int, int] = {0: 0}
    for log in logs:
        for row in log.phases:
            if row.phase == SERVING and to_s(row.start_ns) < end_s:
                changes[row.start_ns] = changes.get(row.start_ns, 0) + 1
                if row.end_ns is not None and to_s(row.end_ns) < end_s:
                    changes[row.end_ns] = changes.get(row.end_ns, 0) - 1
    counts = np.cumsum([change for _, change in sorted(changes.items())])
    return int(which(counts.tolist()))


def _end_s(row: PhaseRow, end_s: float) -> float:
    return end_s if row.end_ns is None else min(to_s(row.end_ns), end_s)
