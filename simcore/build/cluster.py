"""The replicas of a scenario on the virtual clock."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from simcore.build.block_events import follows_blocks
from simcore.build.fault_times import can_withdraw, paces
from simcore.build.pool import PreparedPool
from simcore.build.replica import ReplicaParts, further_batch, replica_parts
from simcore.build.warm_up import warm_up
from simcore.core.clock import to_ns
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.recording.recorder import Recorder
from simcore.scheduling.offloading import Offloading
from simcore.service.clock import Clock
from simcore.service.mortal_replica import MortalReplica
from simcore.service.pipeline import InFlightBatch, Pipeline
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig
from simcore.service.replica_limits import Role
from simcore.service.roles import DecodeReplica, MigratingReplica, PrefillReplica
from simcore.workload import Workload, has_contents

_REPLICAS: dict[Role, type[Replica]] = {"mixed": Replica, "prefill": PrefillReplica, "decode": DecodeReplica}


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """The replicas of a pool, all batches that they have in flight, their stages, and what lies below their memory.

    A replica without pipeline stages has one batch: itself. Batches of replicas that have been replaced are there too.
    """

    replicas: tuple[Replica, ...]
    batches: list[Replica]
    pipelines: tuple[Pipeline, ...]
    offloadings: tuple[Offloading, ...]


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """The replicas of a service, pool by pool."""

    pools: tuple[ReplicaGroup, ...]
    make: Callable[[int, int | None], tuple[int, MortalReplica]] | None = None
    """Makes another replica of a number, and says of which pool it is; None where none is ever replaced. It is like the
    one of another number from now on, if that is stated."""

    def rebuild(self, index: int, like: int | None = None) -> MortalReplica:
        """A replica to take the place of the one of this number, its caches empty, be it ``like`` another."""
        assert self.make is not None
        pool, replica = self.make(index, like)
        self.pools[pool].batches.append(replica)
        return replica

    @classmethod
    def of_one(cls, replica: Replica, offloading: Offloading) -> "SimulatedCluster":
        """A cluster of one replica."""
        return cls((ReplicaGroup((replica,), [replica], (), (offloading,)),))

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All replicas, those of the first pool first."""
        return tuple(replica for pool in self.pools for replica in pool.replicas)

    @property
    def batches(self) -> tuple[Replica, ...]:
        """All batches in flight, in the same order."""
        return tuple(batch for pool in self.pools for batch in pool.batches)

    @property
    def adapter_loads(self) -> int | None:
        """How often adapters were brought to slots, None without any."""
        slots = [slots for batch in self.batches if (slots := batch.scheduler.state.adapters) is not None]
        return sum(each.loads for each in slots) if slots else None

    @property
    def offloadings(self) -> tuple[Offloading, ...]:
        """What lies below the memory of each replica."""
        return tuple(offloading for pool in self.pools for offloading in pool.offloadings)


def build_cluster(
    clock: Clock,
    recorder: Recorder,
    pools: Sequence[PreparedPool],
    workload: Workload,
    fast_forward: bool,
    check: bool,
) -> SimulatedCluster:
    """All replicas of all pools, their prefix caches warmed up, ready for requests."""
    alone = sum(pool.replicas for pool in pools) == 1 and pools[0].scenario.cluster.scaling is None
    groups: list[ReplicaGroup] = []
    configs: list[ReplicaConfig] = []
    first = 0
    slow_at_times = paces(pools[0].scenario, sum(pool.replicas for pool in pools))
    for pool in pools:
        withdraws = can_withdraw(pool.scenario)
        config = ReplicaConfig(
            to_ns(pool.scenario.measurement.warmup_s),
            alone and not (pool.scenario.faults or pool.scenario.updates or withdraws),
            fast_forward and not follows_blocks(pool.scenario),
            check,
            pool.scenario.host.async_scheduling,
            pool.scenario.workload.gives_up or withdraws,
            slow_at_times or None,
            pool.adapters,
        )
        groups.append(_group(clock, recorder, pool, workload, config, first))
        configs.append(config)
        first += pool.replicas
    shares_content = has_contents(workload)

    ends = list(accumulate(pool.replicas for pool in pools))
    kinds = [place for place, pool in enumerate(pools) for _ in range(pool.replicas)]

    def make(index: int, like: int | None = None) -> tuple[int, MortalReplica]:
        if like is not None:
            kinds[index] = kinds[like]
        pool, config = pools[kinds[index]], configs[kinds[index]]
        late = config.async_scheduling
        parts = replica_parts(pool.scenario, pool.spec, pool.memory, clock, pool.cost, shares_content, ends_late=late)
        return bisect_right(ends, index), MortalReplica(clock, index, parts.scheduler, pool.cost, recorder, config)

    return SimulatedCluster(tuple(groups), make)


def _group(
    clock: Clock, recorder: Recorder, pool: PreparedPool, workload: Workload, config: ReplicaConfig, first: int
) -> ReplicaGroup:
    """The replicas of a pool, which are numbered from ``first``."""
    replicas: list[Replica] = []
    pipelines: list[Pipeline] = []
    offloadings: list[Offloading] = []
    shares_content = has_contents(workload)
    # a pipeline plans a batch when its first stage is free
    late = config.async_scheduling and pool.pipeline is None
    kind = _kind(pool)
    for index in range(first, first + pool.replicas):
        parts = replica_parts(pool.scenario, pool.spec, pool.memory, clock, pool.cost, shares_content, ends_late=late)
        warm_up(parts.memory, pool.scenario, workload)
        offloadings.append(parts.offloading)
        if pool.pipeline is None:
            replicas.append(kind(clock, index, parts.scheduler, pool.cost, recorder, config))
        else:
            pipelines.append(_pipeline(clock, index, parts, pool.cost, recorder, config, pool.pipeline))
            replicas.append(pipelines[-1].batches[0])
    batches: list[Replica] = [batch for pipeline in pipelines for batch in pipeline.batches]
    return ReplicaGroup(tuple(replicas), batches or list(replicas), tuple(pipelines), tuple(offloadings))


def _kind(pool: PreparedPool) -> type[Replica]:
    if can_withdraw(pool.scenario):
        return MortalReplica
    return _REPLICAS[pool.role] if pool.scenario.cluster.migration is None else MigratingReplica


def _pipeline(
    clock: Clock,
    index: int,
    parts: ReplicaParts,
    cost: StepCost,
    recorder: Recorder,
    config: ReplicaConfig,
    pipeline_cost: PipelineCost,
) -> Pipeline:
    """The stages of one replica, with a batch in flight for each."""
    pipeline = Pipeline(pipeline_cost)
    config = ReplicaConfig(config.measure_since_ns, check=config.check)
    further = [further_batch(parts.scheduler, cost) for _ in pipeline_cost.stages[1:]]
    for scheduler in (parts.scheduler, *further):
        InFlightBatch(clock, index, scheduler, cost, recorder, config, pipeline)
    return pipeline
