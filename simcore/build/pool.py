"""A pool with everything loaded that its part of a scenario names: what its replicas are made of."""

from collections.abc import Iterator
from dataclasses import dataclass

from simcore.build.adapters import adapter_cost, check_adapters
from simcore.build.memory_plan import MemoryPlan, kv_format
from simcore.build.offloading import build_offloading
from simcore.build.parallelism import check_parallelism
from simcore.build.prices import host_overhead, kernel_prices, pipeline_cost, step_cost
from simcore.build.recurrent_state import check_recurrent_state
from simcore.build.retention import with_retention
from simcore.build.turns import check_turns
from simcore.build.warm_up import check_warm_up, with_pins
from simcore.core.errors import InputError
from simcore.cost.adapters import AdapterCost
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.hardware import Accelerator, load_accelerator
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.models import ModelSpec, load_model
from simcore.scenario import Scenario
from simcore.scenario.named_senders import check_named_senders
from simcore.scenario.pools import in_pool, pool_scenarios
from simcore.service.clock import Clock
from simcore.service.replica_limits import Role
from simcore.workload import Workload, has_contents, samples_per_request


@dataclass(frozen=True, slots=True)
class PreparedPool:
    """Like replicas of one model, ready to be built.

    ``scenario`` has the pool as its whole cluster. ``name`` is empty where a scenario states no pools. ``pipeline`` has
    prices by stage, where there are several; ``cost`` is of all their layers together. ``adapters`` are what
    those cost, if there are any.
    """

    name: str
    role: Role
    scenario: Scenario
    spec: ModelSpec
    accelerator: Accelerator
    cost: StepCost
    memory: MemoryPlan
    pipeline: PipelineCost | None = None
    adapters: AdapterCost | None = None

    @classmethod
    def of(cls, name: str, role: Role, scenario: Scenario, spec: ModelSpec, workload: Workload) -> "PreparedPool":
        """Check the scenario of a pool and load what it names; raises ``ServetwinError`` for what is wrong with it."""
        spec = with_retention(spec, scenario.memory.retention, scenario.memory.block_size_tokens)
        accelerator, shares_content = load_accelerator(scenario.cluster.accelerator), has_contents(workload)
        check_parallelism(scenario, spec, accelerator)
        check_turns(scenario)
        check_named_senders(scenario, workload)
        check_adapters(scenario, spec, role, shares_content)
        check_recurrent_state(scenario, spec, shares_content)
        plan = MemoryPlan.of(scenario, spec, accelerator, shares_content)
        check_warm_up(scenario, workload, shares_content)
        plan = with_pins(plan, scenario, spec, workload)
        _check_samples(scenario, samples_per_request(workload))
        build_offloading(scenario, plan, Clock())  # so that what is wrong with it is told now
        prices = kernel_prices(scenario, spec, accelerator)
        host = host_overhead(scenario, prices.profile)
        cost, stages = step_cost(scenario, spec, prices, host), pipeline_cost(scenario, spec, prices, host)
        adapters = adapter_cost(scenario, spec, accelerator, prices.roofline)
        return cls(name, role, scenario, spec, accelerator, cost, plan, stages, adapters)

    @property
    def replicas(self) -> int:
        """How many there can be at once."""
        return self.scenario.cluster.places

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values of a token, of all layers."""
        memory = self.scenario.memory
        return kv_bytes_per_token(
            self.spec, kv_format(self.scenario, self.spec), sharing_layers=memory.kv_sharing_layers
        )


def prepare_pools(scenario: Scenario, spec: ModelSpec, workload: Workload) -> Iterator[PreparedPool]:
    """The pools of a complete scenario, in order; raises ``ServetwinError`` with the fields that pools state."""
    stated = scenario.cluster.pools
    for place, alone in enumerate(pool_scenarios(scenario)):
        if stated is None:
            yield PreparedPool.of("", "mixed", alone, spec, workload)
            continue
        try:
            own = spec if stated[place].model is None else load_model(alone.model)
            yield PreparedPool.of(stated[place].name, stated[place].role, alone, own, workload)
        except InputError as error:
            raise in_pool(error, place, dict(stated[place])) from error


def _check_samples(scenario: Scenario, samples: int) -> None:
    """Refuse what would not treat the samples of a request as engines do, or could not tell them apart."""
    radix = scenario.memory.prefix_caching and scenario.memory.prefix_cache.index == "radix"
    reasons = {
        "memory.prefix_cache.index is radix, where samples of one step do not find each other's prompt": radix,
        "hits in memory.tiers are counted by request": bool(scenario.memory.tiers),
    }
    for reason, holds in reasons.items():
        if samples > 1 and holds:
            raise InputError("workload.samples", samples, f"1, since {reason}")
