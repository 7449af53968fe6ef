"""Running requests that go from replica to replica: what goes together, and what moves them."""

from collections.abc import Sequence

from simcore.build.disaggregation import topology_of
from simcore.build.fault_times import can_withdraw
from simcore.build.pool import PreparedPool
from simcore.build.turns import turns_of
from simcore.core.clock import to_ns
from simcore.core.errors import InputError
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Network
from simcore.service.clock import Clock
from simcore.service.links import Network as SharedLinks
from simcore.service.migrations import MigrationConfig, Migrations
from simcore.service.stage import Stage
from simcore.workload import Workload, samples_per_request


def check_migration(scenario: Scenario, pools: Sequence[PreparedPool], workload: Workload) -> None:
    """Raise ``InputError`` where requests are to move that cannot."""
    section = scenario.cluster.migration
    if section is None:
        return
    reasons = {
        "there is one replica": sum(pool.replicas for pool in pools) == 1,
        "samples of a request stay together": samples_per_request(workload) > 1,
        "requests are assigned to pools": scenario.cluster.assignment is not None,
        "replicas are updated meanwhile": bool(scenario.updates),
        "replicas lose requests by faults or hedging": can_withdraw(scenario),
        "pools differ in the KV bytes of a token": len({pool.kv_bytes_per_token for pool in pools}) > 1,
    }
    for pool in pools:
        reasons |= _of_pool(pool)
    for reason, holds in reasons.items():
        if holds:
            raise InputError("cluster.migration.policy.name", section.policy["name"], f"none, since {reason}")


def _of_pool(pool: PreparedPool) -> dict[str, bool]:
    scenario = pool.scenario
    where = f" in pool {pool.name}" if pool.name else ""
    reasons = {
        "requests are handed over": pool.role != "mixed",
        f"{pool.spec.name} has linear attention, whose states are not moved": pool.spec.has_linear_attention,
        f"{pool.spec.name} has layers whose windows give blocks back": pool.memory.layout.releases,
        "prompts and decodes take turns": turns_of(scenario) is not None,
        "pipeline stages have batches in flight": pool.pipeline is not None,
        "requests stay in their data-parallel group": scenario.cluster.data_parallel > 1,
        "preempted requests are swapped out or rejected": scenario.scheduler.preemption.mode in ("swap", "reject"),
        "memory has tiers below": bool(scenario.memory.tiers),
        "memory is reserved for whole requests": scenario.memory.reservation != "none",
        "the prefix cache has an index of a radix tree": scenario.memory.prefix_cache.index == "radix",
        "tenants have shares of memory": bool(scenario.memory.prefix_cache.tenant_shares),
    }
    return {reason + where: holds for reason, holds in reasons.items()}


def build_migrations(
    scenario: Scenario, pools: Sequence[PreparedPool], stage: Stage, clock: Clock, recorder: Recorder
) -> Migrations | None:
    """What moves running requests, None where all stay."""
    section = scenario.cluster.migration
    if section is None:
        return None
    network = scenario.cluster.network or Network()
    topology = topology_of(network, pools)
    return Migrations(
        clock,
        stage,
        build_policy("migration", section.policy, "cluster.migration.policy"),
        SharedLinks(clock, topology.bytes_per_s, to_ns(network.latency_s)),
        topology,
        MigrationConfig(
            pools[0].kv_bytes_per_token,
            to_ns(section.interval_s),
            section.spare_tokens,
            section.last_tokens,
            section.most_copies,
        ),
        recorder,
    )
