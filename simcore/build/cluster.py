"""The replicas of a scenario on the virtual clock."""

from dataclasses import dataclass

from simcore.build.memory_plan import MemoryPlan
from simcore.build.replica import ReplicaParts, further_batch, replica_parts
from simcore.build.warm_up import warm_up
from simcore.core.clock import to_ns
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.models import ModelSpec
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario
from simcore.scheduling.offloading import Offloading
from simcore.service.clock import Clock
from simcore.service.pipeline import InFlightBatch, Pipeline
from simcore.service.replica import Replica, ReplicaConfig
from simcore.workload import Workload, has_contents


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """The replicas of a service, all batches that they have in flight, their stages, and what lies below their memory.

    A replica without pipeline stages has one batch: itself.
    """

    replicas: tuple[Replica, ...]
    batches: tuple[Replica, ...]
    pipelines: tuple[Pipeline, ...]
    offloadings: tuple[Offloading, ...]


def build_cluster(
    clock: Clock,
    recorder: Recorder,
    scenario: Scenario,
    spec: ModelSpec,
    plan: MemoryPlan,
    workload: Workload,
    cost: StepCost,
    pipeline_cost: PipelineCost | None,
    fast_forward: bool,
    check: bool,
) -> SimulatedCluster:
    """All replicas of a scenario, their prefix caches warmed up, ready for requests."""
    count = scenario.cluster.replicas
    config = ReplicaConfig(
        to_ns(scenario.measurement.warmup_s),
        count == 1,
        fast_forward,
        check,
        scenario.host.async_scheduling,
        scenario.workload.gives_up,
    )
    replicas: list[Replica] = []
    pipelines: list[Pipeline] = []
    offloadings: list[Offloading] = []
    for index in range(count):
        parts = replica_parts(scenario, spec, plan, clock, cost, has_contents(workload))
        warm_up(parts.memory, scenario, workload)
        offloadings.append(parts.offloading)
        if pipeline_cost is None:
            replicas.append(Replica(clock, index, parts.scheduler, cost, recorder, config))
        else:
            pipelines.append(_pipeline(clock, index, parts, cost, recorder, config, pipeline_cost))
            replicas.append(pipelines[-1].lanes[0])
    batches = [lane for pipeline in pipelines for lane in pipeline.lanes] or replicas
    return SimulatedCluster(tuple(replicas), tuple(batches), tuple(pipelines), tuple(offloadings))


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
