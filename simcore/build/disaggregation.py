"""Prefill and decode in different pools: what goes together, and what moves requests from one to the other."""

from collections.abc import Sequence

from simcore.build.cluster import SimulatedCluster
from simcore.build.grouping import grouped_routing
from simcore.build.pool import PreparedPool
from simcore.build.turns import turns_of
from simcore.core.clock import to_ns
from simcore.core.errors import InputError, ServetwinError
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Handover, Network
from simcore.service.block_events import BlockEvents
from simcore.service.clock import Clock
from simcore.service.handovers import HandoverConfig, Handovers
from simcore.service.links import Network as SharedLinks
from simcore.service.links import Place, Topology
from simcore.service.replica import Replica
from simcore.service.replica_limits import ReplicaLimits
from simcore.service.stage import Stage
from simcore.workload import Workload, samples_per_request


def check_roles(scenario: Scenario, pools: Sequence[PreparedPool], workload: Workload) -> None:
    """Raise ``InputError`` for pools of roles that do not go together, or that cannot hand over what they have."""
    stated = scenario.cluster.pools or []
    roles: list[str] = [pool.role for pool in stated]
    if "prefill" not in roles and "decode" not in roles:
        if scenario.cluster.handover is not None:
            raise InputError("cluster.handover", scenario.cluster.handover.transfer, "none without pools that prefill")
        return
    for one, other in (("prefill", "decode"), ("decode", "prefill")):
        if one not in roles:
            raise InputError(f"cluster.pools.{roles.index(other)}.role", other, f"a pool of role {one} beside it")
    if samples_per_request(workload) > 1:
        raise InputError("workload.samples", samples_per_request(workload), "1 where pools hand over requests")
    moving = [(place, pool) for place, pool in enumerate(pools) if stated[place].role != "mixed"]
    for place, pool in moving:
        _check_pool(f"cluster.pools.{place}", pool)
    sizes = {pool.kv_bytes_per_token for _, pool in moving}
    if len(sizes) > 1:
        place, pool = moving[-1]
        expected = f"a KV cache of the same bytes per token in all pools that hand over, not {sorted(sizes)}"
        raise InputError(f"cluster.pools.{place}.precision", pool.scenario.precision.kv_cache, expected)


def _check_pool(field: str, pool: PreparedPool) -> None:
    scenario = pool.scenario
    if pool.spec.has_linear_attention:
        expected = f"mixed, since {pool.spec.name} has linear attention, whose states are not moved"
        raise InputError(f"{field}.role", "prefill or decode", expected)
    if turns_of(scenario) is not None:
        expected = "one without turns of prompts and decodes where KV is handed over"
        raise InputError(f"{field}.scheduler.batching.name", scenario.scheduler.batching["name"], expected)
    if scenario.cluster.pipeline_parallel > 1:
        raise InputError(f"{field}.pipeline_parallel", scenario.cluster.pipeline_parallel, "1 where KV is handed over")
    if scenario.scheduler.preemption.mode in ("reject", "swap"):
        mode = scenario.scheduler.preemption.mode
        raise InputError(f"{field}.scheduler.preemption.mode", mode, "recompute or wait where KV is handed over")
    if turns_of(scenario) is not None:
        batching = scenario.scheduler.batching["name"]
        raise InputError(f"{field}.scheduler.batching", batching, "one without turns where KV is handed over")
    if scenario.memory.tiers or scenario.memory.reservation != "none":
        raise InputError(f"{field}.memory", "tiers or a reservation", "neither where KV is handed over")


def check_routing(scenario: Scenario) -> None:
    """Raise ``ServetwinError`` for a routing policy that cannot choose among so many replicas."""
    cluster = scenario.cluster
    by_role = [(pool.role, pool.places) for pool in cluster.pools or ()] or [("mixed", cluster.places)]
    decoding = sum(replicas for role, replicas in by_role if role == "decode")
    policies = [("cluster.routing", cluster.routing, sum(replicas for _, replicas in by_role) - decoding)]
    if cluster.handover is not None:
        policies.append(("cluster.handover.routing", cluster.handover.routing, decoding))
    for field, section, replicas in policies:
        try:
            build_policy("routing", section, field).check_replicas(replicas)
        except ValueError as error:
            raise ServetwinError(f"{field}.{error}.") from error


def entry_stage(
    scenario: Scenario, pools: Sequence[PreparedPool], cluster: SimulatedCluster, samples: int, clock: Clock
) -> Stage:
    """The replicas that requests come to first."""
    replicas, limits = _replicas(pools, cluster, ("mixed", "prefill"))
    if scenario.cluster.assignment is not None:
        grouped = grouped_routing(scenario, pools)
        return Stage(replicas, limits, grouped, samples, [pool.places for pool in grouped.pools])
    routing = build_policy("routing", scenario.cluster.routing, "cluster.routing")
    stage = Stage(replicas, limits, routing, samples)
    if routing.follows_blocks:
        stage.block_events = BlockEvents(clock, routing)
        for place, replica in enumerate(stage.replicas):
            stage.block_events.follow(place, replica)
    return stage


def build_handovers(
    scenario: Scenario, pools: Sequence[PreparedPool], cluster: SimulatedCluster, clock: Clock, recorder: Recorder
) -> Handovers | None:
    """What moves requests between pools, None where each stays in its pool."""
    decoding, limits = _replicas(pools, cluster, ("decode",))
    if not decoding:
        return None
    section, network = scenario.cluster.handover or Handover(), scenario.cluster.network or Network()
    topology = topology_of(network, pools)
    source = next(pool for pool in pools if pool.role == "prefill")
    return Handovers(
        clock,
        Stage(decoding, limits, build_policy("routing", section.routing, "cluster.handover.routing")),
        SharedLinks(clock, topology.bytes_per_s, to_ns(network.latency_s)),
        topology,
        HandoverConfig(
            source.kv_bytes_per_token,
            source.spec.layers if section.transfer == "layers" else None,
            section.lost_share,
            section.retries,
            scenario.seed,
        ),
        recorder,
    )


def _replicas(
    pools: Sequence[PreparedPool], cluster: SimulatedCluster, roles: Sequence[str]
) -> tuple[list[Replica], list[ReplicaLimits]]:
    """The replicas of some roles, and what each could serve, the same for all of a pool."""
    replicas: list[Replica] = []
    limits: list[ReplicaLimits] = []
    for pool, group in zip(pools, cluster.pools, strict=True):
        if pool.role in roles:
            blocks = pool.memory.group_blocks if pool.scenario.cluster.data_parallel > 1 else None
            limits += [
                ReplicaLimits(group.replicas[0].scheduler, blocks, pool.role, pool.spec.max_context_tokens)
            ] * len(group.replicas)
            replicas += group.replicas
    return replicas, limits


def topology_of(network: Network, pools: Sequence[PreparedPool]) -> Topology:
    """Replicas on nodes, in order; one that does not fit the node begun begins another."""
    places: list[Place] = []
    node, used = 0, 0
    for pool in pools:
        devices, chip = pool.scenario.cluster.devices_per_replica, pool.accelerator
        scale_up = chip.pcie_bytes_per_s if chip.interconnect_bytes_per_s is None else chip.interconnect_bytes_per_s
        rate = pool.scenario.cluster.network_gb_per_s * 1e9
        for _ in range(pool.replicas):
            if used and used + devices > network.devices_per_node:
                node, used = node + 1, 0
            places.append(Place(node, devices * scale_up, devices * rate))
            used += devices
            node, used = node + used // network.devices_per_node, used % network.devices_per_node
    uplink = None if network.uplink_gb_per_s is None else network.uplink_gb_per_s * 1e9
    return Topology(places, network.nodes_per_rack, uplink)
