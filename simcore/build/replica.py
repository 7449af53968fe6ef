"""The parts of one replica that take decisions and keep books, from a scenario: for a simulation as for an engine."""

from dataclasses import dataclass

from simcore.build.adapters import adapter_slots
from simcore.build.memory import build_memory
from simcore.build.memory_plan import MemoryPlan
from simcore.build.offloading import build_offloading, recompute_time
from simcore.build.prices import step_price
from simcore.cost.step_cost import StepCost
from simcore.memory import KVMemory
from simcore.memory.kv_bytes import attention_counts
from simcore.memory.radix_counter import KVRadixCounter
from simcore.memory.tiers import Timer
from simcore.models import ModelSpec
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.offloading import Offloading
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.turns.scheduler import TurnScheduler


@dataclass(frozen=True, slots=True)
class ReplicaParts:
    """A scheduler, the KV memory that it gives away, and what lies below that."""

    scheduler: Scheduler
    memory: KVMemory
    offloading: Offloading


def replica_parts(
    scenario: Scenario,
    spec: ModelSpec,
    plan: MemoryPlan,
    timer: Timer,
    cost: StepCost | None = None,
    shares_content: bool = True,
    numbered: bool = False,
    ends_late: bool = False,
) -> ReplicaParts:
    """Fresh parts of one replica, which policies of other replicas know nothing of.

    ``timer`` tells the time and calls back when transfers from tiers end. ``cost`` prices steps for policies that ask,
    and weighs loading against computing; without it neither is possible. Memory only counts blocks where the requests
    of a workload share no content (``shares_content``) and nobody wants to know their numbers (``numbered``). With
    ``ends_late`` a step is planned before the result of the one before it is known.

    Raises ``ServetwinError`` for what is wrong with the scenario's policies or memory.
    """
    memory = build_memory(scenario, spec, plan, shares_content, timer, numbered)
    offloading = build_offloading(scenario, plan, timer)
    recompute_ns = None
    if cost is not None and scenario.memory.load_from_tiers == "if-faster":
        recompute_ns = recompute_time(cost, scenario.memory.block_size_tokens)
    config = scheduler_config(scenario, spec, plan, ends_late)
    price = None if cost is None else step_price(cost)
    turns = config.batching.turns
    if turns is not None and isinstance(memory, KVRadixCounter):
        scheduler: Scheduler = TurnScheduler(config, memory, turns, price)
    else:
        scheduler = Scheduler(config, memory, offloading.loading(memory, recompute_ns), offloading.swapping, price)
    scheduler.state.adapters = adapter_slots(scenario)
    return ReplicaParts(scheduler, memory, offloading)


def scheduler_config(scenario: Scenario, spec: ModelSpec, plan: MemoryPlan, ends_late: bool) -> SchedulerConfig:
    """The settings of a scheduler with fresh policies; raises ``ServetwinError`` for what is wrong with these."""
    section = scenario.scheduler
    windows = {kind.window_tokens for kind in attention_counts(spec) if kind.window_tokens is not None}
    return SchedulerConfig(
        build_policy("ordering", section.ordering, "scheduler.ordering"),
        build_policy("batching", section.batching, "scheduler.batching"),
        build_policy("preemption", section.preemption.victim, "scheduler.preemption.victim"),
        tuple(sorted(windows)),
        section.reserve_whole_prompt,
        section.preemption.mode,
        section.preemption.reserved_blocks,
        plan.watermark_blocks,
        section.preemption.inherit_priority,
        ends_late,
    )


def further_batch(first: Scheduler, cost: StepCost) -> Scheduler:
    """The scheduler of another batch in flight of the same replica."""
    batch = Scheduler(first.config, first.memory, step_price=step_price(cost))
    batch.share(first)
    return batch
