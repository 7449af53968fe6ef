"""Run a scenario from its document to its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from policies.admission import Admission
from simcore.build.assumed import assumed, too_long_a_context
from simcore.build.cluster import SimulatedCluster, build_cluster
from simcore.build.memory_plan import MemoryPlan, kv_format
from simcore.build.offloading import build_offloading
from simcore.build.parallelism import check_parallelism
from simcore.build.prices import host_overhead, kernel_prices, pipeline_cost, step_cost
from simcore.build.recurrent_state import check_recurrent_state
from simcore.build.retention import with_retention
from simcore.build.warm_up import check_warm_up, with_pins
from simcore.core.clock import to_ns
from simcore.core.errors import InputError, ServetwinError
from simcore.core.result import Columns, Result
from simcore.core.token_gaps import merged
from simcore.cost.assumptions import HostOverhead
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.hardware import Accelerator, load_accelerator
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.metrics.distribution import cumulative_points_of_gaps
from simcore.metrics.run_facts import RunFacts
from simcore.metrics.summary import summarise
from simcore.metrics.tables import request_table, step_table
from simcore.metrics.transfers import transfer_table
from simcore.models import ModelSpec, load_model
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario, parse_scenario
from simcore.scenario.named_senders import check_named_senders
from simcore.scenario.paths import with_absolute_paths
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Cluster
from simcore.service.api_server import ApiServer
from simcore.service.clock import Clock
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
    def prepare(cls, document: Mapping[str, Any], base_dir: Path, spec: ModelSpec | None = None) -> "Simulation":
        """Check a scenario document and load what it names; files are looked up from ``base_dir``.

        ``spec`` is the model where it is known already, and ``model`` but its name. Raises ``ServetwinError`` for
        whatever a user can get wrong, before anything runs.
        """
        scenario = with_absolute_paths(parse_scenario(document), base_dir)
        memory = scenario.memory
        spec = load_model(scenario.model) if spec is None else spec
        spec = with_retention(spec, memory.retention, memory.block_size_tokens)
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
        prices = kernel_prices(scenario, spec, accelerator)
        host = host_overhead(scenario, prices.profile)
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
        clock, recorder = Clock(), Recorder()
        described = self.scenario, self.spec, self.memory, self.workload
        cluster = build_cluster(clock, recorder, *described, self.cost, self.pipeline, fast_forward, check)
        return self.run_on(clock, recorder, cluster, progress)

    def run_on(
        self,
        clock: Clock,
        recorder: Recorder,
        cluster: SimulatedCluster,
        progress: Progress | None = None,
        measured_on: str | None = None,
    ) -> Result:
        """Have the workload's requests served by replicas that are there already, on whatever clock they run by.

        ``measured_on`` names the machine where steps are computed instead of priced.
        """
        started = perf_counter()
        sessions = self._send(clock, self.router(clock, recorder, cluster), progress)
        end_s = self.scenario.measurement.end_s
        try:
            clock.run(until=None if end_s is None else to_ns(end_s))
        except OverflowError:
            raise ServetwinError(
                "The run would go on for more than 292 years, the most that its clock holds."
            ) from None
        for batch in cluster.batches:
            batch.close(clock.now_ns)
        simulated = perf_counter()
        notices = sessions.notices if sessions is not None else ()
        return self._result(recorder, cluster, notices, clock.has_more_to_do, started, simulated, measured_on)

    def router(self, clock: Clock, recorder: Recorder, cluster: SimulatedCluster) -> Router:
        """Whoever sends requests on to these replicas, or turns them away."""
        scenario = self.scenario
        admission: list[Admission] = [
            build_policy("admission", section, f"scheduler.admission.{index}")
            for index, section in enumerate(scenario.scheduler.admission)
        ]
        return Router(
            clock,
            cluster.replicas,
            build_policy("routing", scenario.cluster.routing, "cluster.routing"),
            self.max_context_tokens,
            recorder,
            admission,
            samples_per_request(self.workload),
            self.memory.group_blocks if scenario.cluster.data_parallel > 1 else None,
        )

    def _send(self, clock: Clock, router: Router, progress: Progress | None) -> SessionSender | None:
        """Have the requests of the workload sent; returns who sends those of sessions."""
        samples = samples_per_request(self.workload)
        if progress is not None and samples > 1:
            progress = _by_request(progress, samples)
        api = ApiServer(HostOverhead(**self.scenario.host.model_dump()))
        if isinstance(self.workload, Sessions):
            sessions = SessionSender(clock, self.workload, api, router, progress)
            sessions.start()
            return sessions
        if isinstance(self.workload, ClosedLoop):
            closed_loop(clock, self.workload, api, router, progress)
        else:
            clock.process(open_loop(clock, self.workload, api, router, progress))
        return None

    def _result(
        self,
        recorder: Recorder,
        cluster: SimulatedCluster,
        notices: tuple[str, ...],
        cut_off: bool,
        started: float,
        simulated: float,
        measured_on: str | None,
    ) -> Result:
        scenario, samples = self.scenario, samples_per_request(self.workload)
        transfers = transfer_table(cluster.offloadings)
        requests, steps = request_table(recorder, samples), step_table(recorder)
        facts = RunFacts(
            scenario=scenario,
            accelerator=self.accelerator,
            cost=self.cost,
            total_blocks=self.total_blocks,
            block_tables=len(self.memory.layout.groups),
            kv_bytes_per_token=kv_bytes_per_token(
                self.spec, kv_format(scenario, self.spec), sharing_layers=scenario.memory.kv_sharing_layers
            ),
            work=tuple(batch.log.work for batch in cluster.batches),
            ranges=tuple(batch.log.ranges for batch in cluster.batches),
            peak_used_blocks=max(replica.scheduler.memory.peak_used_blocks for replica in cluster.replicas),
            first_tokens=recorder.first_tokens_after(to_ns(scenario.measurement.warmup_s)),
            notices=(
                *getattr(self.workload, "notices", ()),
                *assumed(scenario, self.workload),
                *too_long_a_context(self.memory, self.max_context_tokens),
                *notices,
                *self._memory_notices(requests),
            ),
            cut_off=cut_off,
            simulation_wall_s=simulated - started,
            offloadings=cluster.offloadings,
            transfers=transfers,
            pipelines=cluster.pipelines,
            measured_on=measured_on,
        )
        gaps = [batch.log.gaps.gaps.chunks() for batch in cluster.batches]
        all_gaps = merged([chunk for chunks in gaps for chunk in chunks])
        summary = summarise(facts, requests, steps, gaps, all_gaps, started)
        return Result(scenario.document(), summary, requests, steps, cumulative_points_of_gaps(all_gaps), transfers)

    def _memory_notices(self, requests: Columns) -> tuple[str, ...]:
        finished = requests["state"] == "finished"
        samples = samples_per_request(self.workload)
        return self.memory.notices((requests["prompt_tokens"] + requests["output_tokens"] // samples)[finished])


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
