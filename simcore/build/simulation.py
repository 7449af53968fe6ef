"""Run a scenario from its document to its result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import Any

from policies.admission import Admission
from simcore.build.assumed import assumed, too_long_a_context
from simcore.build.block_events import check_block_events
from simcore.build.cluster import SimulatedCluster, build_cluster
from simcore.build.disaggregation import build_handovers, check_roles, check_routing, entry_stage
from simcore.build.faults import build_faults, check_faults
from simcore.build.gateway import build_gateway, check_gateway
from simcore.build.grouping import check_assignment
from simcore.build.memory_plan import MemoryPlan
from simcore.build.migration import build_migrations, check_migration
from simcore.build.pool import PreparedPool, prepare_pools
from simcore.build.recurrent_state import state_notices
from simcore.build.scaling import build_fleets, check_scaling, scaling_notices
from simcore.build.updates import build_updates, check_updates
from simcore.core.clock import to_ns
from simcore.core.errors import InputError, ServetwinError, UnknownNameError
from simcore.core.result import Columns, Result
from simcore.core.token_gaps import merged
from simcore.cost.assumptions import HostOverhead
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.engines import limit_notices, version_notices
from simcore.hardware import Accelerator
from simcore.metrics.distribution import cumulative_points_of_gaps
from simcore.metrics.handovers import with_handovers
from simcore.metrics.run_facts import PoolFacts, RunFacts
from simcore.metrics.summary import summarise
from simcore.metrics.tables import request_table, step_table
from simcore.metrics.transfers import transfer_table
from simcore.models import ModelSpec, load_model
from simcore.recording.fleet_log import FleetLog
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario, parse_scenario
from simcore.scenario.paths import with_absolute_paths
from simcore.scenario.policy_choice import build_policy
from simcore.service.api_server import ApiServer
from simcore.service.clock import Clock
from simcore.service.senders import Progress, closed_loop, open_loop
from simcore.service.service import Router
from simcore.service.session_sender import SessionSender
from simcore.workload import ClosedLoop, Sessions, Workload, build_workload, samples_per_request


@dataclass(frozen=True, slots=True)
class Simulation:
    """A checked scenario with everything loaded that it names, ready to run."""

    scenario: Scenario
    workload: Workload
    max_context_tokens: int
    pools: tuple[PreparedPool, ...]

    @property
    def spec(self) -> ModelSpec:
        """The model, as the first pool runs it."""
        return self.pools[0].spec

    @property
    def accelerator(self) -> Accelerator:
        """That of the first pool."""
        return self.pools[0].accelerator

    @property
    def cost(self) -> StepCost:
        """What steps of the first pool cost."""
        return self.pools[0].cost

    @property
    def pipeline(self) -> PipelineCost | None:
        """The same by stage, where there are several."""
        return self.pools[0].pipeline

    @property
    def memory(self) -> MemoryPlan:
        """The memory of a replica of the first pool."""
        return self.pools[0].memory

    @property
    def total_blocks(self) -> int:
        """KV blocks that the requests of such a replica can hold."""
        return self.memory.request_blocks

    @classmethod
    def prepare(cls, document: Mapping[str, Any], base_dir: Path, spec: ModelSpec | None = None) -> "Simulation":
        """Check a scenario document and load what it names; files are looked up from ``base_dir``.

        ``spec`` is the model where it is known already, and ``model`` but its name. Raises ``ServetwinError`` for
        whatever a user can get wrong, before anything runs.
        """
        scenario = with_absolute_paths(parse_scenario(document), base_dir)
        spec = load_model(scenario.model) if spec is None else spec
        check_routing(scenario)
        workload = build_workload(scenario.workload, scenario.seed, base_dir)
        pools = tuple(prepare_pools(scenario, spec, workload))
        check_roles(scenario, pools, workload)
        check_block_events(scenario, pools)
        check_migration(scenario, pools, workload)
        check_faults(scenario, pools)
        check_gateway(scenario, pools, workload)
        check_assignment(scenario, pools)
        check_updates(scenario, pools)
        check_scaling(scenario, pools)
        return cls(scenario, workload, _max_context_tokens(scenario, pools), pools)

    def of_pool(self, name: str) -> "Simulation":
        """The simulation with one pool alone; raises ``UnknownNameError`` if there is none of this name."""
        named = {pool.name: pool for pool in self.pools}
        if name not in named:
            raise UnknownNameError("--pool", name, filter(None, named))
        return replace(self, scenario=named[name].scenario, pools=(named[name],))

    def run(self, progress: Progress | None = None, fast_forward: bool = True, check: bool = False) -> Result:
        """Simulate; ``progress`` is told how many requests have arrived.

        ``fast_forward=False`` runs decode steps one by one, with the same result. ``check`` recounts all books after
        every step.
        """
        clock, recorder = Clock(), Recorder()
        cluster = build_cluster(clock, recorder, self.pools, self.workload, fast_forward, check)
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
        router = self.router(clock, recorder, cluster)
        sessions = self._send(clock, router, progress)
        end_s = self.scenario.measurement.end_s
        try:
            clock.run(until=None if end_s is None else to_ns(end_s))
        except OverflowError:
            raise ServetwinError(
                "The run would go on for more than 292 years, the most that its clock holds."
            ) from None
        router.close_gateway()
        for batch in cluster.batches:
            batch.close(clock.now_ns)
        router.close()
        simulated = perf_counter()
        notices = sessions.notices if sessions is not None else ()
        return self._result(recorder, cluster, router, notices, clock.has_more_to_do, started, simulated, measured_on)

    def router(self, clock: Clock, recorder: Recorder, cluster: SimulatedCluster) -> Router:
        """Whoever sends requests on to these replicas, or turns them away."""
        scenario = self.scenario
        admission: list[Admission] = [
            build_policy("admission", section, f"scheduler.admission.{index}")
            for index, section in enumerate(scenario.scheduler.admission)
        ]
        handovers = build_handovers(scenario, self.pools, cluster, clock, recorder)
        entry = entry_stage(scenario, self.pools, cluster, samples_per_request(self.workload), clock)
        gateway = build_gateway(scenario, entry, clock, recorder)
        faults = build_faults(scenario, cluster, entry, handovers, clock, gateway.resending)
        updates = build_updates(scenario, self.pools, cluster, entry, clock)
        fleets = build_fleets(self.pools, cluster, entry, faults, clock, recorder)
        limit = self.max_context_tokens
        moving = build_migrations(scenario, self.pools, entry, clock, recorder)
        return Router(clock, entry, limit, recorder, admission, handovers, gateway, faults, updates, moving, fleets)

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
        router: Router,
        notices: tuple[str, ...],
        cut_off: bool,
        started: float,
        simulated: float,
        measured_on: str | None,
    ) -> Result:
        scenario, samples = self.scenario, samples_per_request(self.workload)
        transfers = transfer_table(cluster.offloadings)
        requests, steps = request_table(recorder, samples), step_table(recorder)
        handovers = router.handover_rows
        if handovers is not None:
            requests = with_handovers(requests, handovers)
        facts = RunFacts(
            scenario=scenario,
            pools=tuple(self._pool_facts(cluster, router.fleet_logs)),
            first_tokens=recorder.first_tokens_after(to_ns(scenario.measurement.warmup_s)),
            notices=tuple(dict.fromkeys(self._notices(notices, requests))),
            warnings=tuple(
                dict.fromkeys(
                    warning
                    for pool in self.pools
                    for warning in too_long_a_context(pool.memory, self.max_context_tokens)
                )
            ),
            cut_off=cut_off,
            simulation_wall_s=simulated - started,
            transfers=transfers,
            measured_on=measured_on,
            handovers=handovers,
            migrations=router.migration_log,
            faults=router.fault_records if scenario.faults else None,
            gateway=router.gateway,
            updates=router.update_records,
            adapter_loads=cluster.adapter_loads,
            sessions=self.workload.follow_ups.session if isinstance(self.workload, Sessions) else None,
        )
        gaps = [batch.log.gaps.gaps.chunks() for batch in cluster.batches]
        all_gaps = merged([chunk for chunks in gaps for chunk in chunks])
        summary, fleet, service = summarise(facts, requests, steps, gaps, all_gaps, started)
        points = cumulative_points_of_gaps(all_gaps)
        return Result(scenario.document(), summary, requests, steps, points, transfers, fleet, service)

    def _pool_facts(self, cluster: SimulatedCluster, fleets: Mapping[int, FleetLog]) -> Iterator[PoolFacts]:
        first = 0
        for number, (pool, group) in enumerate(zip(self.pools, cluster.pools, strict=True)):
            yield PoolFacts(
                name=pool.name,
                role=pool.role,
                scenario=pool.scenario,
                accelerator=pool.accelerator,
                cost=pool.cost,
                first_replica=first,
                total_blocks=pool.memory.request_blocks,
                block_tables=len(pool.memory.layout.groups),
                kv_bytes_per_token=pool.kv_bytes_per_token,
                work=tuple(batch.log.work for batch in group.batches),
                ranges=tuple(batch.log.ranges for batch in group.batches),
                peak_used_blocks=max(batch.scheduler.memory.peak_used_blocks for batch in group.batches),
                offloadings=group.offloadings,
                pipelines=group.pipelines,
                fleet=fleets.get(number),
            )
            first += pool.replicas

    def _notices(self, of_sessions: Sequence[str], requests: Columns) -> Iterator[str]:
        """What a user should know of the run, pool by pool where pools are stated."""
        finished = requests["state"] == "finished"
        samples = samples_per_request(self.workload)
        tokens = (requests["prompt_tokens"] + requests["output_tokens"] // samples)[finished]
        yield from getattr(self.workload, "notices", ())
        for pool in self.pools:
            yield from version_notices(pool.scenario.engine)
            tokens_of_a_step = pool.scenario.scheduler.batching.get("max_batched_tokens")
            gpu = pool.accelerator
            yield from limit_notices(pool.scenario.engine, gpu.name, gpu.memory_bytes / 2**30, tokens_of_a_step)
            yield from assumed(pool.scenario, self.workload)
            yield from scaling_notices(pool)
            yield from state_notices(pool.scenario, pool.spec, pool.memory.demand.kept_states)
        yield from of_sessions
        for pool in self.pools:
            yield from pool.memory.notices(tokens)


def _by_request(progress: Progress, samples: int) -> Progress:
    return lambda sequences: progress(sequences // samples)


def _max_context_tokens(scenario: Scenario, pools: Sequence[PreparedPool]) -> int:
    limit, spec = scenario.max_context_tokens, max((pool.spec for pool in pools), key=attrgetter("max_context_tokens"))
    if limit is None:
        return spec.max_context_tokens
    if limit > spec.max_context_tokens:
        expected = f"at most {spec.max_context_tokens}, the context of {spec.name}"
        raise InputError("max_context_tokens", limit, expected)
    return limit
