"""Run a scenario from its document to its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from simcore.build.assumed import assumed
from simcore.build.memory import build_memory
from simcore.build.memory_plan import MemoryPlan, kv_format, weight_dtype
from simcore.build.offloading import build_offloading, recompute_time
from simcore.build.parallelism import check_parallelism, split_of
from simcore.build.recurrent_state import check_recurrent_state
from simcore.build.retention import with_retention
from simcore.build.warm_up import check_warm_up, warm_up, with_pins
from simcore.core.clock import Clock, to_ns, to_s
from simcore.core.errors import InputError, ServetwinError
from simcore.core.result import Result
from simcore.core.token_gaps import merged
from simcore.cost.assumptions import ROUTING, HostOverhead, RooflineEfficiency
from simcore.cost.fabric import Fabric
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.pipeline import PipelineCost
from simcore.cost.profile_choice import ROOFLINE, chosen_profile, fallback_profiles, needed_kinds
from simcore.cost.roofline import Roofline
from simcore.cost.step_cost import StepCost
from simcore.hardware import Accelerator, load_accelerator
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.metrics.distribution import cumulative_points_of_gaps
from simcore.metrics.summary import RunFacts, summarise
from simcore.metrics.tables import request_table, step_table
from simcore.metrics.transfers import transfer_table
from simcore.models import ModelSpec, load_model
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario, parse_scenario
from simcore.scenario.named_senders import check_named_senders
from simcore.scenario.paths import with_absolute_paths
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Cluster
from simcore.scheduling.offloading import Offloading
from simcore.scheduling.scheduler import Scheduler
from simcore.service.api_server import ApiServer
from simcore.service.pipeline import InFlightBatch, Pipeline
from simcore.service.replica import Replica
from simcore.service.service import Progress, Router, closed_loop, open_loop
from simcore.service.session_sender import SessionSender
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
    pipeline: PipelineCost | None = None
    """Prices by stage, where there are several; ``cost`` is of all their layers together."""

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
        check_parallelism(scenario, spec, accelerator)
        _check_routing(scenario.cluster)
        workload = build_workload(scenario.workload, scenario.seed, base_dir)
        check_named_senders(scenario, workload)
        check_recurrent_state(scenario, spec, has_contents(workload))
        plan = MemoryPlan.of(scenario, spec, accelerator, has_contents(workload))
        check_warm_up(scenario, workload, has_contents(workload))
        plan = with_pins(plan, scenario, spec, workload)
        _check_samples(scenario, samples_per_request(workload))
        build_offloading(scenario, plan, Clock())  # so that what is wrong with it is told now
        prices, host = _kernel_prices(scenario, spec, accelerator), HostOverhead(**scenario.host.model_dump())
        return cls(
            scenario,
            spec,
            accelerator,
            step_cost(scenario, spec, prices, host),
            workload,
            plan,
            _max_context_tokens(scenario, spec),
            pipeline_cost(scenario, spec, prices, host),
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
        offloadings = [build_offloading(scenario, self.memory, clock) for _ in range(count)]
        pipelines: list[Pipeline] = []
        replicas: list[Replica] = []
        for index, offloading in enumerate(offloadings):
            scheduler = self._scheduler(clock, offloading)
            if self.pipeline is None:
                replicas.append(
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
                        scenario.host.async_scheduling,
                        scenario.workload.gives_up,
                    )
                )
            else:
                pipelines.append(Pipeline(self.pipeline))
                others = [self._scheduler(clock, offloading, scheduler) for _ in self.pipeline.stages[1:]]
                for lane in (scheduler, *others):
                    InFlightBatch(clock, index, lane, self.cost, recorder, pipelines[-1], warmup_ns, check)
                replicas.append(pipelines[-1].lanes[0])
        batches = [lane for pipeline in pipelines for lane in pipeline.lanes] or replicas
        routing = build_policy("routing", scenario.cluster.routing, "cluster.routing")
        admission = [
            build_policy("admission", section, f"scheduler.admission.{index}")
            for index, section in enumerate(scenario.scheduler.admission)
        ]
        group_blocks = self.memory.group_blocks if scenario.cluster.data_parallel > 1 else None
        router = Router(clock, replicas, routing, self.max_context_tokens, recorder, admission, samples, group_blocks)
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
        for replica in batches:
            replica.close(clock.now_ns)
        simulated = perf_counter()
        requests, steps, transfers = request_table(recorder, samples), step_table(recorder), transfer_table(offloadings)
        finished = requests["state"] == "finished"
        lengths = (requests["prompt_tokens"] + requests["output_tokens"] // samples)[finished]
        facts = RunFacts(
            scenario=scenario,
            accelerator=self.accelerator,
            cost=self.cost,
            total_blocks=self.total_blocks,
            block_tables=len(self.memory.layout.groups),
            kv_bytes_per_token=kv_bytes_per_token(
                self.spec, kv_format(scenario, self.spec), sharing_layers=scenario.memory.kv_sharing_layers
            ),
            work=tuple(replica.work for replica in batches),
            ranges=tuple(replica.ranges for replica in batches),
            peak_used_blocks=max(replica.scheduler.memory.peak_used_blocks for replica in replicas),
            notices=(
                *getattr(self.workload, "notices", ()),
                *assumed(scenario, self.workload),
                *(sessions.notices if sessions is not None else ()),
                *self.memory.notices(lengths),
            ),
            cut_off=clock.has_more_to_do,
            simulation_wall_s=simulated - started,
            offloadings=tuple(offloadings),
            transfers=transfers,
            pipelines=tuple(pipelines),
        )
        gaps = [replica.tokens.gaps.chunks() for replica in batches]
        all_gaps = merged([chunk for chunks in gaps for chunk in chunks])
        summary = summarise(facts, requests, steps, gaps, all_gaps, started)
        return Result(scenario.document(), summary, requests, steps, cumulative_points_of_gaps(all_gaps), transfers)

    def _scheduler(self, clock: Clock, offloading: Offloading, first: Scheduler | None = None) -> Scheduler:
        """The scheduler of a replica, or of another of its batches in flight beside the ``first``."""
        section, memory_section = self.scenario.scheduler, self.scenario.memory
        if first is not None:
            lane = Scheduler(
                first.ordering,
                first.batching,
                first.preemption,
                first.memory,
                self.cost.window_tokens,
                section.reserve_whole_prompt,
                section.preemption.mode,
                section.preemption.reserved_blocks,
                self.memory.watermark_blocks,
                section.preemption.inherit_priority,
            )
            lane.share(first)
            return lane
        shares = has_contents(self.workload)
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
            self.memory.watermark_blocks,
            section.preemption.inherit_priority,
            offloading.loading(memory, recompute_ns),
            offloading.swapping,
        )


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


def _kernel_prices(scenario: Scenario, spec: ModelSpec, accelerator: Accelerator) -> KernelPrices:
    cluster, choice = scenario.cluster, scenario.pricing.profile
    named = len(Path(cluster.accelerator).parts) == 1
    efficiency = RooflineEfficiency(**scenario.efficiency.model_dump())
    kinds = needed_kinds(spec, cluster.tensor_parallel)
    weights = weight_dtype(scenario, spec)
    profile = chosen_profile(choice, accelerator.name, kinds, named, scenario.engine, weights)
    return KernelPrices(
        Roofline.of(accelerator, efficiency, weights),
        profile,
        fallback_profiles(kinds, profile, accelerator.name, named),
        Fabric.of(accelerator, cluster.pcie, cluster.network_gb_per_s * 1e9),
        fitted_collectives=choice != ROOFLINE,
        expert_kernels=scenario.pricing.expert_kernels,
        routing=ROUTING if scenario.pricing.routing == "power-law" else "balanced",
    )


def step_cost(scenario: Scenario, spec: ModelSpec, prices: KernelPrices, host: HostOverhead) -> StepCost:
    """What steps of a scenario cost at such prices, all layers together."""
    split = split_of(scenario)
    dtype, cache = weight_dtype(scenario, spec), kv_format(scenario, spec)
    return StepCost(spec, prices, host, dtype, cache, split.tensor, split=split)


def pipeline_cost(scenario: Scenario, spec: ModelSpec, prices: KernelPrices, host: HostOverhead) -> PipelineCost | None:
    """The same stage by stage, None where there is one."""
    cluster = scenario.cluster
    if cluster.pipeline_parallel == 1:
        return None
    dtype, cache = weight_dtype(scenario, spec), kv_format(scenario, spec)
    return PipelineCost(spec, prices, host, dtype, cache, split_of(scenario), cluster.pipeline_parallel)
