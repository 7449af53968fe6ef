"""Run a scenario from its document to its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path
from time import perf_counter
from typing import Any

from simcore.api_server import ApiServer
from simcore.clock import Clock, to_ns, to_s
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.fabric import Fabric
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.profile_choice import ROOFLINE, chosen_profile, lent_collectives, needed_kinds
from simcore.cost.roofline import Roofline
from simcore.cost.step_cost import StepCost
from simcore.errors import InputError, ServetwinError
from simcore.hardware import Accelerator, load_accelerator
from simcore.memory.building import build_memory
from simcore.memory.capacity import tensor_parallel_reach
from simcore.memory.offloading import Offloading, recompute_time
from simcore.memory.plan import MemoryPlan, kv_format, weight_dtype
from simcore.memory.retention import with_retention
from simcore.memory.warm_up import check_warm_up, warm_up, with_pins
from simcore.metrics.distribution import cumulative_points_of_gaps
from simcore.metrics.recorder import Recorder
from simcore.metrics.summary import RunFacts, summarise
from simcore.metrics.tables import request_table, step_table
from simcore.metrics.token_gaps import merged
from simcore.metrics.transfers import transfer_table
from simcore.models import ModelSpec, load_model
from simcore.replica import Replica
from simcore.result import Result
from simcore.scenario import Scenario, parse_scenario
from simcore.scenario.named_senders import check_named_senders
from simcore.scenario.paths import with_absolute_paths
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Cluster
from simcore.scheduling.scheduler import Scheduler
from simcore.service import Progress, Router, closed_loop, open_loop
from simcore.session_sender import SessionSender
from simcore.workload import ClosedLoop, Sessions, Workload, build_workload, has_contents, samples_per_request


@dataclass(frozen=True, slots=True)
class Simulation:
    """A checked scenario with everything loaded that it names, ready to run."""

    scenario: Scenario
    spec: ModelSpec
    accelerator: Accelerator
    cost: StepCost
    workload: Workload
    memory: MemoryPlan
    max_context_tokens: int

    @property
    def total_blocks(self) -> int:
        """KV blocks that the requests of one replica can hold."""
        return self.memory.request_blocks

    @classmethod
    def prepare(cls, document: Mapping[str, Any], base_dir: Path) -> "Simulation":
        """Check a scenario document and load what it names; files are looked up from ``base_dir``.

        Raises ``ServetwinError`` for whatever a user can get wrong, before anything runs.
        """
        scenario = with_absolute_paths(parse_scenario(document), base_dir)
        memory = scenario.memory
        spec = with_retention(load_model(scenario.model), memory.retention, memory.block_size_tokens)
        accelerator = load_accelerator(scenario.cluster.accelerator)
        _check_tensor_parallel(scenario.cluster.tensor_parallel, spec, accelerator)
        _check_routing(scenario.cluster)
        workload = build_workload(scenario.workload, scenario.seed, base_dir)
        check_named_senders(scenario, workload)
        plan = MemoryPlan.of(scenario, spec, accelerator, has_contents(workload))
        check_warm_up(scenario, has_contents(workload))
        plan = with_pins(plan, scenario, spec, workload)
        _check_samples(scenario, samples_per_request(workload))
        Offloading.build(scenario, plan, Clock())  # so that what is wrong with it is told now
        return cls(
            scenario,
            spec,
            accelerator,
            _step_cost(scenario, spec, accelerator),
            workload,
            plan,
            _max_context_tokens(scenario, spec),
        )

    def run(self, progress: Progress | None = None, fast_forward: bool = True, check: bool = False) -> Result:
        """Simulate; ``progress`` is told how many requests have arrived.

        ``fast_forward=False`` runs decode steps one by one, with the same result. ``check`` recounts all books after
        every step.
        """
        started = perf_counter()
        clock, recorder, scenario = Clock(), Recorder(), self.scenario
        warmup_ns = to_ns(scenario.measurement.warmup_s)
        count, samples = scenario.cluster.replicas, samples_per_request(self.workload)
        if progress is not None and samples > 1:
            progress = _by_request(progress, samples)
        offloadings = [Offloading.build(scenario, self.memory, clock) for _ in range(count)]
        schedulers = [self._scheduler(clock, offloading) for offloading in offloadings]
        replicas = [
            Replica(
                clock,
                index,
                scheduler,
                self.cost,
                recorder,
                warmup_ns,
                count == 1,
                fast_forward,
                check,
                scenario.host.overlapped,
            )
            for index, scheduler in enumerate(schedulers)
        ]
        for replica in replicas:
            replica.clients_give_up = scenario.workload.gives_up
        routing = build_policy("routing", scenario.cluster.routing, "cluster.routing")
        admission = [
            build_policy("admission", section, f"scheduler.admission.{index}")
            for index, section in enumerate(scenario.scheduler.admission)
        ]
        router = Router(clock, replicas, routing, self.max_context_tokens, recorder, admission, samples)
        api = ApiServer(HostOverhead(**scenario.host.model_dump()))
        sessions = None
        if isinstance(self.workload, Sessions):
            sessions = SessionSender(clock, self.workload, api, router, progress)
            sessions.start()
        elif isinstance(self.workload, ClosedLoop):
            closed_loop(clock, self.workload, api, router, progress)
        else:
            clock.process(open_loop(clock, self.workload, api, router, progress))
        end_s = scenario.measurement.end_s
        try:
            clock.run(until=None if end_s is None else to_ns(end_s))
        except OverflowError:
            raise ServetwinError(
                "The run would go on for more than 292 years, the most that its clock holds."
            ) from None
        for replica in replicas:
            replica.close(clock.now_ns)
        simulated = perf_counter()
        requests, steps, transfers = request_table(recorder, samples), step_table(recorder), transfer_table(offloadings)
        finished = requests["state"] == "finished"
        lengths = (requests["prompt_tokens"] + requests["output_tokens"] // samples)[finished]
        facts = RunFacts(
            scenario=scenario,
            spec=self.spec,
            accelerator=self.accelerator,
            cost=self.cost,
            total_blocks=self.total_blocks,
            block_tables=len(self.memory.layout.groups),
            work=tuple(replica.work for replica in replicas),
            ranges=tuple(replica.ranges for replica in replicas),
            peak_used_blocks=max(replica.scheduler.memory.peak_used_blocks for replica in replicas),
            notices=(
                *getattr(self.workload, "notices", ()),
                *(sessions.notices if sessions is not None else ()),
                *self.memory.notices(lengths),
            ),
            cut_off=clock.has_more_to_do,
            simulation_wall_s=simulated - started,
            offloadings=tuple(offloadings),
            transfers=transfers,
        )
        gaps = [replica.tokens.gaps.chunks() for replica in replicas]
        all_gaps = merged([chunk for chunks in gaps for chunk in chunks])
        summary = summarise(facts, requests, steps, gaps, all_gaps, started)
        return Result(scenario.document(), summary, requests, steps, cumulative_points_of_gaps(all_gaps), transfers)

    def _scheduler(self, clock: Clock, offloading: Offloading) -> Scheduler:
        shares = has_contents(self.workload)
        section, memory_section = self.scenario.scheduler, self.scenario.memory
        memory = build_memory(self.scenario, self.spec, self.memory, shares, lambda: to_s(clock.now_ns))
        warm_up(memory, self.scenario, self.workload)
        recompute_ns = None
        if memory_section.load_from_tiers == "if-faster":
            recompute_ns = recompute_time(self.cost, memory_section.block_size_tokens)
        return Scheduler(
            build_policy("ordering", section.ordering, "scheduler.ordering"),
            build_policy("batching", section.batching, "scheduler.batching"),
            build_policy("preemption", section.preemption.victim, "scheduler.preemption.victim"),
            memory,
            self.cost.window_tokens,
            section.reserve_whole_prompt,
            section.preemption.mode,
            section.preemption.reserved_blocks,
            floor(self.total_blocks * memory_section.watermark_share),
            section.preemption.inherit_priority,
            offloading.loading(memory, recompute_ns),
            offloading.swapping,
        )


def _check_tensor_parallel(ranks: int, spec: ModelSpec, accelerator: Accelerator) -> None:
    field = "cluster.tensor_parallel"
    reach = tensor_parallel_reach(accelerator)
    if ranks > reach:
        raise InputError(field, ranks, f"at most {reach}, since no more {accelerator.name} can work as one")
    heads = min(group.attention.query_heads for group in spec.layer_groups)
    if heads % ranks:
        raise InputError(field, ranks, f"a divisor of the {heads} query heads of {spec.name}")


def _check_routing(cluster: Cluster) -> None:
    try:
        build_policy("routing", cluster.routing, "cluster.routing").check_replicas(cluster.replicas)
    except ValueError as error:
        raise ServetwinError(f"cluster.routing.{error}.") from error


def _by_request(progress: Progress, samples: int) -> Progress:
    return lambda sequences: progress(sequences // samples)


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


def _max_context_tokens(scenario: Scenario, spec: ModelSpec) -> int:
    limit = scenario.max_context_tokens
    if limit is None:
        return spec.max_context_tokens
    if limit > spec.max_context_tokens:
        expected = f"at most {spec.max_context_tokens}, the context of {spec.name}"
        raise InputError("max_context_tokens", limit, expected)
    return limit


def _step_cost(scenario: Scenario, spec: ModelSpec, accelerator: Accelerator) -> StepCost:
    dtype = weight_dtype(scenario, spec)
    cluster, choice = scenario.cluster, scenario.pricing.profile
    ranks = cluster.tensor_parallel
    named = len(Path(cluster.accelerator).parts) == 1
    efficiency = RooflineEfficiency(**scenario.efficiency.model_dump())
    profile = chosen_profile(choice, accelerator.name, needed_kinds(spec, ranks), named, scenario.engine)
    prices = KernelPrices(
        Roofline.of(accelerator, efficiency, dtype),
        profile,
        lent_collectives(profile, accelerator.name, named),
        Fabric.of(accelerator, cluster.pcie, cluster.network_gb_per_s * 1e9),
        fitted_collectives=choice != ROOFLINE,
        expert_kernels=scenario.pricing.expert_kernels,
    )
    return StepCost(spec, prices, HostOverhead(**scenario.host.model_dump()), dtype, kv_format(scenario), ranks)
