"""One set-up with one number of replicas, run until it is clear whether it holds its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.bands.replay import replay
from experiments.planner.evidence import Share
from experiments.planner.hopeless import HopelessRunError, run_unless_hopeless
from experiments.planner.load import lasting
from experiments.planner.stages import Stage, staged
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.cost.uncertainty import Draw
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.objectives import kept, missed

Document = dict[str, Any]
_SHOWN_DEVIATES = 1.96
_LIKELY_DEVIATES = 1.28
_KEPT = ("metrics", "throughput", "utilisation", "kv", "preemptions", "pricing", "cost", "counts", "window")
"""Sections of a summary that a plan needs."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be tried: a scenario in full, and the runs that it may take. ``draw`` has other prices than usual."""

    document: Document
    stages: tuple[Stage, ...]
    draw: Draw | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """How far one limit was kept: the share of requests within it, and the bounds of its 95% interval."""

    metric: str
    percentile: str
    limit_s: float
    share: float | None
    low: float
    high: float
    value_s: float | None
    value_interval_s: tuple[float, float] | None

    @property
    def needed(self) -> float:
        """The share that the limit asks for."""
        return PERCENTILES[self.percentile] / 100

    @property
    def name(self) -> str:
        """The limit as it is stated: ``ttft_p99``."""
        return f"{self.metric.removesuffix('_s')}_{self.percentile}"

    @property
    def ratio(self) -> float:
        """The latency at the percentile over its limit; above 1 it is broken."""
        return float("inf") if self.value_s is None else self.value_s / self.limit_s


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether limits hold. ``sure`` is False where even the longest run left that open, which counts as not held.

    ``limits`` and ``figures``, sections of a summary, are of the last run that went to its end. ``simulations`` and
    ``requests`` are what all runs took together.
    """

    holds: bool
    sure: bool
    limits: tuple[Held, ...]
    figures: Mapping[str, Any]
    simulations: int
    requests: int
    document: Document = field(repr=False)

    @property
    def tightest(self) -> Held:
        """The limit that lies nearest to its latency, or furthest beyond."""
        return max(self.limits, key=lambda held: held.ratio)


def attempt(trial: Trial) -> Outcome:
    """Run the stages of a trial until one settles it; raises ``ServetwinError`` for what is wrong with the scenario."""
    last: tuple[Document, Result] | None = None
    requests = 0
    for simulations, stage in enumerate(trial.stages, start=1):
        section = None if stage.duration_s is None else lasting(trial.document["workload"], stage.duration_s)
        document = staged(trial.document, stage, section)
        simulation = Simulation.prepare(document, Path())
        if trial.draw is not None:
            simulation = replay(simulation, trial.draw)
        try:
            result = run_unless_hopeless(simulation, _SHOWN_DEVIATES) if last is not None else simulation.run()
        except HopelessRunError as error:
            assert last is not None
            requests += error.arrived
            return _outcome(*last, False, True, simulations, requests)
        requests += len(result.requests["request_id"])
        last = document, result
        settled = _settled(shares(result), stage, trial.stages[simulations:])
        if settled is not None:
            return _outcome(document, result, *settled, simulations, requests)
    raise AssertionError("the last stage settles every trial")


def shares(result: Result) -> dict[tuple[str, str, float], Share]:
    """For each stated limit the share of the measured requests that kept it, undecided ones left out."""
    requests, window = result.requests, result.summary["window"]
    arrived = requests["arrival_s"] >= window["start_s"]
    found = {}
    for metric, limits in result.scenario["slo"].items():
        for percentile, limit_s in limits.items():
            good = kept(requests, metric, limit_s)
            decided = (good | missed(requests, metric, limit_s, window["end_s"])) & arrived
            found[metric, percentile, limit_s] = Share.of(good[decided])
    return found


def _settled(
    found: Mapping[tuple[str, str, float], Share], stage: Stage, later: Sequence[Stage]
) -> tuple[bool, bool] | None:
    """Whether limits hold and whether that is sure; None where a longer run is to tell."""
    needs = [(PERCENTILES[percentile] / 100, share) for (_, percentile, _), share in found.items()]
    if stage.duration_s is None:  # the workload itself is the question, not what it was drawn from
        return all(share.value is not None and share.value >= needed for needed, share in needs), True
    if any(share.interval(stage.fail_deviates)[1] < needed for needed, share in needs):
        return False, True
    deviates = stage.pass_deviates
    if deviates is None:
        return None
    if all(share.interval(deviates)[0] >= needed for needed, share in needs):
        return True, True
    longest = max((each.duration_s or 0.0 for each in later), default=0.0) / stage.duration_s
    if longest > 1 and all(_might_hold(share, needed, longest) for needed, share in needs):
        return None
    return False, any(share.interval(_SHOWN_DEVIATES)[1] < needed for needed, share in needs)


def _might_hold(share: Share, needed: float, longer: float) -> bool:
    """Whether a run so many times as long is likely to show that a limit holds, were the share the same in it."""
    longest = Share(round(share.kept * longer), round(share.requests * longer), share.effective * longer)
    return longest.interval(_LIKELY_DEVIATES)[0] >= needed


def _outcome(document: Document, result: Result, holds: bool, sure: bool, simulations: int, requests: int) -> Outcome:
    metrics = result.summary["metrics"]
    limits = []
    for (metric, percentile, limit_s), share in shares(result).items():
        low, high = share.interval(_SHOWN_DEVIATES)
        bounds = metrics[metric]["ci"][percentile] if metrics[metric]["count"] else None
        value = metrics[metric][percentile]
        interval = None if bounds is None else (float(bounds[0]), float(bounds[1]))
        limits.append(Held(metric, percentile, limit_s, share.value, low, high, value, interval))
    figures = {name: result.summary[name] for name in _KEPT}
    return Outcome(holds, sure, tuple(limits), figures, simulations, requests, document)
