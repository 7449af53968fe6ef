"""A run that is given up as soon as so many requests have missed a limit that it cannot be kept any more."""

from bisect import bisect_left

from experiments.planner.evidence import Share
from simcore.build.cluster import build_cluster
from simcore.build.simulation import Simulation
from simcore.core.clock import to_ns
from simcore.core.result import Result
from simcore.metrics.definitions import PERCENTILES
from simcore.recording.recorder import REJECTED, Recorder
from simcore.service.clock import Clock
from simcore.workload import ClosedLoop, Sessions, samples_per_request

_SURER = 2.0
"""Requests miss limits together; so many times the deviates that would do for independent ones are asked for."""


class HopelessRunError(Exception):
    """A limit is broken for good; ``arrived`` requests had arrived by then."""

    def __init__(self, arrived: int) -> None:
        super().__init__(arrived)
        self.arrived = arrived


def run_unless_hopeless(simulation: Simulation, deviates: float) -> Result:
    """The result of a run; raises ``HopelessRunError`` once it is clear that a limit is broken.

    That is so if it would be settled, with so many ``deviates``, were all requests still to come within their limits.
    """
    clock, recorder = Clock(), Recorder()
    cluster = build_cluster(clock, recorder, simulation.pools, simulation.workload, True, False)
    allowed = _may_miss(simulation, _SURER * deviates)

    def look(arrived: int) -> None:
        if any(_missed(recorder, simulation, metric, limit) > most for (metric, limit), most in allowed.items()):
            raise HopelessRunError(arrived)

    return simulation.run_on(clock, recorder, cluster, look if allowed else None)


def _may_miss(simulation: Simulation, deviates: float) -> dict[tuple[str, float], int]:
    """How many requests may miss each limit; none are told where requests wait for answers, or have samples."""
    workload, scenario = simulation.workload, simulation.scenario
    if isinstance(workload, ClosedLoop | Sessions) or samples_per_request(workload) > 1:
        return {}
    since_ns = to_ns(scenario.measurement.warmup_s)
    measured = sum(int((batch.arrival_ns >= since_ns).sum()) for batch in workload.batches())
    return {
        (metric, limit_s): _most_missed(measured, PERCENTILES[percentile] / 100, deviates)
        for metric, limits in scenario.slo.model_dump().items()
        for percentile, limit_s in limits.items()
    }


def _most_missed(requests: int, needed: float, deviates: float) -> int:
    def broken(misses: int) -> bool:
        return Share(requests - misses, requests, requests).interval(deviates)[1] < needed

    return bisect_left(range(requests + 1), True, key=broken) - 1


def _missed(recorder: Recorder, simulation: Simulation, metric: str, limit_s: float) -> int:
    rows = recorder.requests()
    measured = rows["arrival_ns"] >= to_ns(simulation.scenario.measurement.warmup_s)
    ended = rows["state"] != REJECTED
    limit_ns = to_ns(limit_s)
    if metric == "tpot_s":
        over = rows["end_ns"] - rows["first_token_ns"] > limit_ns * (rows["output_tokens"] - 1)
        over &= rows["output_tokens"] > 1
    else:
        over = rows["first_token_ns" if metric == "ttft_s" else "end_ns"] - rows["arrival_ns"] > limit_ns
    return int((measured & (over | ~ended)).sum())
