"""What a summary needs of a run beside its tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from simcore.core.result import Columns
from simcore.cost.pipeline import PipelineCost
from simcore.cost.price_shares import RangeCounter
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.hardware import Accelerator
from simcore.metrics.arrays import Int64Array, Mask
from simcore.recording.fleet_log import ASLEEP, AT_FULL_PRICE, DRAINING, SERVING, FleetLog
from simcore.recording.handover_log import HandoverRow
from simcore.recording.migration_log import MigrationLog
from simcore.scenario import Scenario
from simcore.scheduling.offloading import Offloading
from simcore.service.fault_record import FaultRecord
from simcore.service.gateway import Gateway
from simcore.service.pipeline import Pipeline
from simcore.service.replica_limits import Role
from simcore.service.updates import UpdateRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What the tables do not say of like replicas, which are numbered from ``first_replica``; they may come and go.

    ``scenario`` has the pool as its whole cluster; ``name`` is empty where no pools are stated.
    """

    name: str
    role: Role
    scenario: Scenario
    accelerator: Accelerator
    cost: StepCost
    first_replica: int
    total_blocks: int
    block_tables: int
    kv_bytes_per_token: int
    work: tuple[WorkCounter, ...]
    ranges: tuple[RangeCounter, ...]
    peak_used_blocks: int
    offloadings: tuple[Offloading, ...] = ()
    pipelines: tuple[Pipeline, ...] = ()
    fleet: FleetLog | None = None

    @property
    def replicas(self) -> int:
        """How many there are, or can be at once where they come and go."""
        return self.scenario.cluster.places

    @property
    def batches(self) -> int:
        """Batches that all replicas have in flight."""
        return self.replicas * self.scenario.cluster.pipeline_parallel

    @property
    def priced(self) -> StepCost | PipelineCost:
        """By what steps were priced: by stage, where there are several."""
        return self.pipelines[0].cost if self.pipelines else self.cost

    @property
    def price_usd_per_h(self) -> float:
        """The price of one accelerator: what the scenario states, or else the list price."""
        stated = self.scenario.cluster.price_usd_per_h
        price = self.accelerator.price_usd_per_h if stated is None else stated
        assert price is not None
        return price

    @property
    def price_source(self) -> str:
        """Where that price comes from."""
        stated = self.scenario.cluster.price_usd_per_h is not None
        return "the scenario" if stated else f"list price of {self.accelerator.price_date}"

    @property
    def usd_per_h(self) -> float:
        """The price of all accelerators of the pool."""
        return self.price_usd_per_h * self.replicas * self.scenario.cluster.devices_per_replica

    def usd(self, start_s: float, length_s: float) -> float:
        """What the pool costs from some time on: each instance from its start to its end."""
        cluster = self.scenario.cluster
        if self.fleet is None or cluster.scaling is None:
            return self.usd_per_h * length_s / 3600
        full_s = self.fleet.seconds_in(AT_FULL_PRICE, start_s, start_s + length_s)
        asleep_s = self.fleet.seconds_in([ASLEEP], start_s, start_s + length_s)
        paid_s = full_s + cluster.scaling.warm_price_share * asleep_s
        return self.price_usd_per_h * cluster.devices_per_replica * paid_s / 3600

    def replica_s(self, end_s: float) -> float:
        """Seconds of replicas that could compute."""
        return end_s * self.replicas if self.fleet is None else self.fleet.seconds_in([SERVING, DRAINING], 0.0, end_s)

    def of_pool(self, rows: Columns) -> Mask:
        """The rows of a table that are of its replicas."""
        mask: Mask = (rows["replica"] >= self.first_replica) & (rows["replica"] < self.first_replica + self.replicas)
        return mask


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the tables do not say.

    ``first_tokens`` counts those that came after the warm-up, of every sample. ``cut_off`` says that the run ended
    before all was done. ``handovers`` are None where each request stays in its pool, ``migrations`` where none moves.
    ``measured_on`` names the machine whose times these are; None where they were simulated.
    """

    scenario: Scenario
    pools: tuple[PoolFacts, ...]
    first_tokens: int
    notices: tuple[str, ...]
    cut_off: bool
    simulation_wall_s: float
    transfers: Columns = field(default_factory=dict)
    measured_on: str | None = None
    handovers: Sequence[HandoverRow] | None = None
    migrations: MigrationLog | None = None
    faults: Sequence[FaultRecord] | None = None
    gateway: Gateway = field(default_factory=Gateway)
    updates: Sequence[UpdateRecord] = ()
    adapter_loads: int | None = None
    """How often an adapter was brought to a slot; None without adapters."""
    sessions: Int64Array | None = None
    """The session of each request, by its number; None without sessions."""
    warnings: tuple[str, ...] = ()

    @property
    def offloadings(self) -> tuple[Offloading, ...]:
        """What lies below the memory of each replica."""
        return tuple(offloading for pool in self.pools for offloading in pool.offloadings)

    @property
    def price_source(self) -> str:
        """Where the prices of accelerators come from."""
        return " and ".join(dict.fromkeys(pool.price_source for pool in self.pools))

    @property
    def fixed(self) -> bool:
        """Whether all replicas are there for good."""
        return all(pool.fleet is None for pool in self.pools)

    def usd(self, start_s: float, length_s: float) -> float:
        """What all pools cost from some time on."""
        if self.fixed:
            return sum(pool.usd_per_h for pool in self.pools) * length_s / 3600
        return sum(pool.usd(start_s, length_s) for pool in self.pools)

    def usd_per_h(self, end_s: float) -> float:
        """The price of all accelerators; of those that come and go, on average until the end."""
        if self.fixed or not end_s:
            return sum(pool.usd_per_h for pool in self.pools)
        return self.usd(0.0, end_s) * 3600 / end_s

    def of(self, pool: PoolFacts) -> "RunFacts":
        """The facts of one pool alone."""
        return replace(self, pools=(pool,))


def common(values: Iterable[T]) -> T | None:
    """The value that all have, None if they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
