"""What a summary needs of a run beside its tables."""

from dataclasses import dataclass, field

from simcore.core.result import Columns
from simcore.cost.price_shares import RangeCounter
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.hardware import Accelerator
from simcore.scenario import Scenario
from simcore.scheduling.offloading import Offloading
from simcore.service.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the tables do not say.

    ``first_tokens`` counts those that came after the warm-up, of every sample. ``cut_off`` says that the run ended
    before all was done. ``measured_on`` names the machine whose times these are; None where they were simulated.
    """

    scenario: Scenario
    accelerator: Accelerator
    cost: StepCost
    total_blocks: int
    block_tables: int
    kv_bytes_per_token: int
    work: tuple[WorkCounter, ...]
    ranges: tuple[RangeCounter, ...]
    peak_used_blocks: int
    first_tokens: int
    notices: tuple[str, ...]
    cut_off: bool
    simulation_wall_s: float
    offloadings: tuple[Offloading, ...] = ()
    transfers: Columns = field(default_factory=dict)
    pipelines: tuple[Pipeline, ...] = ()
    measured_on: str | None = None

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
        """The price of all accelerators."""
        cluster = self.scenario.cluster
        return self.price_usd_per_h * cluster.replicas * cluster.devices_per_replica
