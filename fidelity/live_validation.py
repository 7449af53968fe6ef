"""A live run held against the simulation of the same arrivals: decisions, times, and where errors come from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidelity.decisions import PlanDifference, first_difference, replayed
from fidelity.measured_cost import at_measured_prices
from fidelity.step_prices import Columns, StepPrices
from simcore.build.simulation import Simulation
from simcore.core.clock import NS_PER_S
from simcore.core.result import Result
from simcore.recording.plan_log import PlannedStep

_METRICS = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
_STATISTICS = ("mean", "p50", "p90", "p99")
_THROUGHPUTS = ("output_tokens_per_s", "requests_per_s")


@dataclass(frozen=True, slots=True)
class TimeCompared:
    """One figure: measured ``live``, ``simulated``, and by how much the simulation is off, None without a measure."""

    metric: str
    statistic: str
    live: float
    simulated: float

    @property
    def error(self) -> float | None:
        """Relative to what was measured."""
        return self.simulated / self.live - 1 if self.live else None


@dataclass(frozen=True, slots=True)
class PartCompared:
    """Time of all steps that one part took, and what prices of that part alone come to."""

    part: str
    live_s: float
    priced_s: float


@dataclass(frozen=True, slots=True)
class RegimeCompared:
    """One load regime: how many plans there were and the first that differs, figures, parts, and both results.

    ``terms_s`` say what the price of all steps consists of; ``outside_share`` is the share of steps with fewer or more
    tokens than any that was measured for the prices. ``disturbed_share`` is the share of the steps' time in which their
    thread did not run, None where it was not asked. ``slowness`` is by how much longer the reference took meanwhile
    than in the calibration, on a steady clock. ``operators`` are some of the steps, run again and timed operator by
    operator, beside what a profile says of them.
    """

    name: str
    plans: int
    difference: PlanDifference | None
    times: list[TimeCompared]
    parts: list[PartCompared]
    terms_s: dict[str, float]
    outside_share: float
    live: Result
    simulated: Result
    disturbed_share: float | None = None
    slowness: float | None = None
    operators: list[PartCompared] = field(default_factory=list)

    def error(self, metric: str, statistic: str) -> float | None:
        """The error of one figure."""
        for row in self.times:
            if (row.metric, row.statistic) == (metric, statistic):
                return row.error
        return None

    def document(self) -> dict[str, Any]:
        """As plain data, without the results."""
        return {
            "regime": self.name,
            "plans": self.plans,
            "first_difference": None if self.difference is None else str(self.difference),
            "times": [{**asdict(row), "error": row.error} for row in self.times],
            "parts": [asdict(part) for part in self.parts],
            "operators": [asdict(part) for part in self.operators],
            "price_terms_s": self.terms_s,
            "steps_outside_measured_share": self.outside_share,
            "disturbed_share": self.disturbed_share,
            "slowness": self.slowness,
        }


def compare_live(
    name: str,
    simulation: Simulation,
    live: Result,
    steps: Mapping[str, NDArray[np.int64]],
    plans: Sequence[PlannedStep],
    table: Columns,
    parts: Sequence[str],
    by_table: bool = True,
    disturbed_share: float | None = None,
) -> RegimeCompared:
    """Replay the decisions of a live run, simulate it at the prices of measured steps (``table``), and compare.

    ``steps`` are the columns of the live run's steps, ``parts`` the names of the parts of their time. If not
    ``by_table``, steps are simulated at the scenario's own prices, which a profile gives.
    """
    prices = StepPrices.fit(table)
    durations_ns = steps["step_ns"].tolist()
    difference = first_difference(plans, replayed(simulation, durations_ns).plans)
    priced = at_measured_prices(simulation, prices) if by_table else simulation
    simulated = priced.run()
    priced_ns = np.array(replayed(priced, durations_ns).priced_ns, dtype=np.float64)
    own = [PartCompared(part, *_part_s(table, steps, f"{part}_ns")) for part in parts]
    terms_s = {term: float(priced.sum()) / NS_PER_S for term, priced in prices.terms_of(steps).items()}
    outside = float(1 - prices.inside(steps).mean()) if len(steps["rows"]) else 0.0
    times = [*_latencies(live, simulated), *_step_times(priced_ns, steps)]
    figures = times, own, terms_s, outside, live, simulated, disturbed_share
    return RegimeCompared(name, len(plans), difference, *figures)


def _part_s(table: Columns, steps: Columns, part: str) -> tuple[float, float]:
    priced = StepPrices.fit(table, part).price_ns(steps)
    return float(steps[part].sum()) / NS_PER_S, float(priced.sum()) / NS_PER_S


def _latencies(live: Result, simulated: Result) -> list[TimeCompared]:
    found = []
    for metric in _METRICS:
        one, other = live.summary["metrics"][metric], simulated.summary["metrics"][metric]
        for statistic in _STATISTICS:
            if one[statistic] is not None and other[statistic] is not None:
                found.append(TimeCompared(metric, statistic, one[statistic], other[statistic]))
    for rate in _THROUGHPUTS:
        one, other = live.summary["throughput"][rate], simulated.summary["throughput"][rate]
        if one is not None and other is not None:
            found.append(TimeCompared(rate, "mean", one, other))
    return found


def _step_times(priced_ns: NDArray[np.float64], steps: Columns) -> list[TimeCompared]:
    """Of the very steps that were run: medians of measured and priced times, and of their sums."""
    if not len(steps["step_ns"]):
        return []
    measured, priced = steps["step_ns"] / NS_PER_S, priced_ns / NS_PER_S
    return [
        TimeCompared("step_s", "p50", float(np.median(measured)), float(np.median(priced))),
        TimeCompared("step_s", "mean", float(measured.mean()), float(priced.mean())),
    ]
