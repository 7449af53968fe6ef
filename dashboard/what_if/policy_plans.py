"""Policies of one kind, compared on the same requests: which there are, and the plan of their runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboard.formatting import number, seconds, share
from experiments.comparison.plan import Plan, plan_comparison
from experiments.comparison.run_store import RunStore
from policies.registry import policy_names
from simcore.core.errors import InputError

KINDS = {
    "Ordering": ("ordering", "scheduler.ordering"),
    "Batching": ("batching", "scheduler.batching"),
    "Preemption": ("preemption", "scheduler.preemption.victim"),
    "Routing": ("routing", "cluster.routing"),
    "Eviction": ("eviction", "memory.prefix_cache.eviction"),
}
"""What policies may differ in: the kind's name in the registry, and where it stands in a scenario."""
_FEWEST, _MOST_RUNS = 2, 200


def names_of(kind: str) -> tuple[str, ...]:
    """The policies of a kind of ``KINDS``."""
    return policy_names(KINDS[kind][0])


def policy_plan(
    document: Mapping[str, Any], base_dir: Path, kind: str, names: Sequence[str], seeds: int | None
) -> Plan:
    """The comparison of policies, the first being the baseline; raises ``ServetwinError`` for what is wrong with it."""
    if len(names) < _FEWEST:
        raise InputError("the policies", len(names), f"at least {_FEWEST} to compare")
    if seeds is not None and seeds * len(names) > _MOST_RUNS:
        raise InputError("the seeds", seeds, f"at most {_MOST_RUNS} runs in all; servetwin compare takes more")
    return plan_comparison(document, base_dir, {KINDS[kind][1]: list(names)}, seeds)


def tenant_figures(plan: Plan, folder: Path) -> dict[str, list[str]]:
    """What each tenant got under each policy, with the first seed; no rows where there is one tenant."""
    names = ("Policy", "Tenant", "Requests", "Service (weighted tokens)", "P99 TTFT", "Kept all limits")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for run in plan.runs:
        if run.seed != plan.seeds[0]:
            continue
        tenants = (RunStore(folder).record(run).summary["fairness"] or {}).get("tenants", {})
        for tenant, figures in tenants.items() if len(tenants) > 1 else ():
            values = (
                run.variant,
                tenant or "(unnamed)",
                f"{figures['finished']:,} of {figures['requests']:,} finished",
                number(float(figures["service"])),
                seconds(figures["p99_ttft_s"]),
                share(figures["slo_attainment"]),
            )
            for name, value in zip(names, values, strict=True):
                columns[name].append(value)
    return columns
