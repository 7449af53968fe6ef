"""Whether the tenants and levels that a scenario names are those of its workload."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.registry import policy_class
from simcore.core.errors import InputError, Phrase, nearest_name
from simcore.scenario.policy_choice import nested_kinds
from simcore.scenario.sections import Scenario
from simcore.workload import ClosedLoop, Sessions, Workload
from simcore.workload.batch import RequestBatch
from simcore.workload.config import StreamsWorkload, WorkloadConfig

_MOST_LISTED = 20


def check_named_senders(scenario: Scenario, workload: Workload) -> None:
    """Raise ``InputError`` for a tenant or a level, named where one is set apart, that no request has.

    What is said of it would change nothing, so it is a slip. A policy's ``keyed_by`` tells which of its parameters are
    mappings from a ``tenant`` or from a ``level``.
    """
    reserved = scenario.scheduler.preemption.reserved_blocks
    named = list(_named(scenario))
    if not named and not reserved:
        return
    known = _Known.of(workload, scenario.workload)
    for field, what, names in named:
        among = known.tenants if what == "tenant" else known.levels
        for name in names:
            if name not in among:
                raise InputError(
                    f"{field}.{name}",
                    Phrase(f"an unknown {what}"),
                    f"a {what} of the workload: {_listed(among)}",
                    nearest_name(str(name), map(str, among)) if what == "tenant" else None,
                )
    least_urgent = max(known.levels)
    for level in reserved:
        if level > least_urgent:
            expected = f"a level up to {least_urgent}, the least urgent of the workload"
            raise InputError(f"scheduler.preemption.reserved_blocks.{level}", Phrase("of no use"), expected)


def _named(scenario: Scenario) -> Iterator[tuple[str, str, Iterable[Any]]]:
    """Each mapping that is not empty: its place, whether it is by tenant or by level, and its keys."""
    scheduler = scenario.scheduler
    shares = scenario.memory.prefix_cache.tenant_shares
    if shares:
        yield "memory.prefix_cache.tenant_shares", "tenant", shares
    yield from _named_by_policy("routing", scenario.cluster.routing, "cluster.routing")
    if scenario.cluster.assignment is not None:
        yield from _named_by_policy("assignment", scenario.cluster.assignment, "cluster.assignment")
    if scenario.cluster.handover is not None:
        yield from _named_by_policy("routing", scenario.cluster.handover.routing, "cluster.handover.routing")
    if scenario.cluster.migration is not None:
        yield from _named_by_policy("migration", scenario.cluster.migration.policy, "cluster.migration.policy")
    yield from _named_by_policy("ordering", scheduler.ordering, "scheduler.ordering")
    yield from _named_by_policy("batching", scheduler.batching, "scheduler.batching")
    yield from _named_by_policy("preemption", scheduler.preemption.victim, "scheduler.preemption.victim")
    for place, policy in enumerate(scheduler.admission):
        yield from _named_by_policy("admission", policy, f"scheduler.admission.{place}")


def _named_by_policy(kind: str, section: Mapping[str, Any], field: str) -> Iterator[tuple[str, str, Iterable[Any]]]:
    policy = policy_class(kind, section["name"])
    for parameter, what in getattr(policy, "keyed_by", {}).items():
        if section[parameter] and isinstance(section[parameter], Mapping):  # which may be one value for all
            yield f"{field}.{parameter}", what, section[parameter]
    for parameter, inner in nested_kinds(policy).items():
        yield from _named_by_policy(inner, section[parameter], f"{field}.{parameter}")


@dataclass(frozen=True, slots=True)
class _Known:
    """The tenants and levels that requests of a workload have, or may have by what is stated."""

    tenants: frozenset[str]
    levels: frozenset[int]

    @classmethod
    def of(cls, workload: Workload, config: WorkloadConfig) -> "_Known":
        tenants: set[str] = set()
        levels = set(_stated_levels(config))  # by chance nobody of a small share may have sent anything
        for batch in _batches(workload):
            tenants.update(("",) if batch.tenant is None else batch.tenants)
            levels.update((0,) if batch.priority is None else np.unique(batch.priority).tolist())
        return cls(frozenset(tenants), frozenset(levels))


def _batches(workload: Workload) -> Iterable[RequestBatch]:
    return [workload.requests] if isinstance(workload, ClosedLoop | Sessions) else workload.batches()


def _stated_levels(config: WorkloadConfig) -> Iterator[int]:
    if isinstance(config, StreamsWorkload):
        for stream in config.streams:
            yield from _stated_levels(stream)
    elif config.tenants is not None:
        yield from (tenant.priority for tenant in config.tenants)


def _listed(names: Iterable[Any]) -> str:
    shown = [str(name) or "'' (nobody is named)" for name in sorted(names)]
    more = len(shown) - _MOST_LISTED
    return ", ".join(shown[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
