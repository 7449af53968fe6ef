"""Pools whose replicas come and go: what goes together, and what starts and stops them."""

from collections.abc import Iterator, Sequence

from policies.scaling.cooldown import Cooldown
from simcore.build.cluster import SimulatedCluster
from simcore.build.pool import PreparedPool
from simcore.core.clock import to_ns
from simcore.core.errors import InputError
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.pools import in_pool
from simcore.scenario.sections import Scaling
from simcore.service.clock import Clock
from simcore.service.faults import Faults
from simcore.service.fleet import Fleet, FleetConfig, SpotConfig
from simcore.service.fleets import Fleets
from simcore.service.stage import Stage
from simcore.service.waiting_room import WaitingRoom
from simcore.service.weight_loading import WeightLinks

_POLICY = "cluster.scaling.policy"


def check_scaling(scenario: Scenario, pools: Sequence[PreparedPool]) -> None:
    """Raise ``InputError`` for what cannot come and go, or for numbers of replicas that contradict each other."""
    first, stated, migration = 0, scenario.cluster.pools, scenario.cluster.migration
    if migration is not None and any(pool.scenario.cluster.scaling is not None for pool in pools):
        expected = "none where replicas come and go"
        raise InputError("cluster.migration.policy.name", migration.policy["name"], expected)
    for place, pool in enumerate(pools):
        try:
            _check_pool(pool, range(first, first + pool.replicas))
        except InputError as error:
            if stated is None:
                raise
            raise in_pool(error, place, dict(stated[place])) from error
        first += pool.replicas


def _check_pool(pool: PreparedPool, places: range) -> None:
    cluster = pool.scenario.cluster
    scaling, spot = cluster.scaling, cluster.spot
    if scaling is None:
        if spot is not None:
            raise InputError(
                "cluster.spot.notice_s", spot.notice_s, "cluster.scaling beside it, which replaces instances"
            )
        return
    if not scaling.min_replicas <= cluster.replicas <= scaling.max_replicas:
        expected = f"from cluster.scaling.min_replicas, {scaling.min_replicas}, to max_replicas, {scaling.max_replicas}"
        raise InputError("cluster.replicas", cluster.replicas, expected)
    reasons = {
        f"pool {pool.name} hands requests over": pool.role != "mixed",
        "pipeline stages have batches in flight": pool.pipeline is not None,
        "memory.tiers outlive a replica": bool(pool.scenario.memory.tiers),
        "swap space outlives a replica": pool.scenario.scheduler.preemption.mode == "swap",
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError("cluster.scaling.max_replicas", scaling.max_replicas, f"no scaling, since {reason}")
    for number, reclaim in enumerate(spot.reclaimed if spot is not None else ()):
        if reclaim.replica not in places:
            expected = f"from {places.start} to {places.stop - 1}, a replica of the pool"
            raise InputError(f"cluster.spot.reclaimed.{number}.replica", reclaim.replica, expected)


def scaling_notices(pool: PreparedPool) -> Iterator[str]:
    """What a cold start comes to, which decides how far ahead a policy has to look."""
    scaling = pool.scenario.cluster.scaling
    if scaling is None:
        return
    start, links = scaling.start, _weight_links(pool, scaling)
    ready_s, whose = start.compile_s + start.warm_up_s, f" of pool {pool.name}" if pool.name else ""
    yield (
        f"A cold start of a replica{whose} takes {start.boot_s + links.alone_s + ready_s:.4g} s where no other starts "
        f"beside it: {start.boot_s:g} s to boot, {links.alone_s:.3g} s for {links.size_bytes / 1e9:.3g} GB of weights, "
        f"{ready_s:g} s to compile and warm up (cluster.scaling.start)."
    )


def build_fleets(
    pools: Sequence[PreparedPool],
    cluster: SimulatedCluster,
    stage: Stage,
    faults: Faults | None,
    clock: Clock,
    recorder: Recorder,
) -> Fleets | None:
    """What starts and stops replicas, None where all are there for good."""
    fleets = dict(_fleets(pools, cluster, stage, clock))
    if not fleets:
        return None
    for fleet in fleets.values():
        if faults is not None:
            fleet.take_down = faults.crashes.take_down
        stage.followers.append(fleet)
    return Fleets(fleets, WaitingRoom(clock, recorder))


def _fleets(
    pools: Sequence[PreparedPool], cluster: SimulatedCluster, stage: Stage, clock: Clock
) -> Iterator[tuple[int, Fleet]]:
    """Each with the number of its pool."""
    first = 0
    for number, pool in enumerate(pools):
        places = range(first, first + pool.replicas)
        first += pool.replicas
        scaling = pool.scenario.cluster.scaling
        if scaling is not None:
            limits = scaling.min_replicas, scaling.max_replicas
            cooldown = Cooldown(*limits, scaling.out_wait_s, scaling.in_wait_s, scaling.most_in)
            policy = build_policy("scaling", scaling.policy, _POLICY)
            yield number, Fleet(clock, stage, _config(pool, scaling, places), policy, cooldown, cluster.rebuild)


def _config(pool: PreparedPool, scaling: Scaling, places: range) -> FleetConfig:
    start, devices = scaling.start, pool.scenario.cluster
    most_running = pool.scenario.scheduler.batching.get("max_running_requests")
    return FleetConfig(
        places=places,
        replicas=devices.replicas,
        warm=scaling.warm_replicas,
        interval_ns=to_ns(scaling.interval_s),
        boot_ns=to_ns(start.boot_s),
        ready_ns=to_ns(start.compile_s) + to_ns(start.warm_up_s),
        wake_ns=to_ns(start.wake_s),
        links=_weight_links(pool, scaling),
        most_running=most_running if isinstance(most_running, int) else None,
        spot=_spot(pool),
    )


def _weight_links(pool: PreparedPool, scaling: Scaling) -> WeightLinks:
    devices = pool.scenario.cluster
    return WeightLinks(
        pool.memory.replica_weight_bytes,
        scaling.start.weights_from,
        scaling.start.read_gb_per_s * 1e9,
        devices.network_gb_per_s * 1e9 * devices.devices_per_replica,
        pool.accelerator.pcie_bytes_per_s * devices.devices_per_replica,
    )


def _spot(pool: PreparedPool) -> SpotConfig | None:
    spot = pool.scenario.cluster.spot
    if spot is None:
        return None
    mean_life_ns = None if spot.mean_life_s is None else to_ns(spot.mean_life_s)
    stated = [(reclaim.replica, to_ns(reclaim.at_s)) for reclaim in spot.reclaimed]
    return SpotConfig(to_ns(spot.notice_s), mean_life_ns, stated, pool.scenario.seed)
