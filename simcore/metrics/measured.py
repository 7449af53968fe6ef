"""A run as metrics see it: its tables, and the spans of time over which they are taken.

The measured window goes from the end of the warm-up to the end of the run. The window of arrivals, over which rates
that are set against demand are taken, ends with the last arrival: what drains afterwards would dilute them. Where
requests arrive for less than a twentieth of the measured window, as in a batch that is sent at once, draining is what
the run is about, and both windows are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array, Int64Array, Mask
from simcore.metrics.confidence import SECTIONS
from simcore.metrics.step_bins import StepBins
from simcore.scenario import Scenario

_LEAST_SHARE_OF_ARRIVALS = 0.05


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """The tables of a run with its windows, in seconds from the start.

    ``good`` marks the requests that finished within every stated limit, ``bad`` those that are known to have missed
    one. ``emitted_tokens`` are the output tokens that came in the measured window, of all samples and whatever became
    of their requests. ``spent_usd`` tells what the machines cost from a time on for so long, both in seconds.
    """

    scenario: Scenario
    requests: Columns
    steps: Columns
    start_s: float
    end_s: float
    good: Mask
    bad: Mask
    emitted_tokens: int
    spent_usd: Callable[[float, float], float]
    arrivals_end_s: float = field(init=False)
    _emitted_until: tuple[Float64Array, Float64Array] = field(init=False)

    def __post_init__(self) -> None:
        arrival_s = self.requests["arrival_s"]
        last_s = float(arrival_s.max()) if len(arrival_s) else self.end_s
        long_enough = last_s - self.start_s >= _LEAST_SHARE_OF_ARRIVALS * self.length_s
        object.__setattr__(self, "arrivals_end_s", min(last_s, self.end_s) if long_enough else self.end_s)
        object.__setattr__(self, "_emitted_until", _emitted_until(self))

    @property
    def length_s(self) -> float:
        """Length of the measured window."""
        return max(self.end_s - self.start_s, 0.0)

    @property
    def arrivals_s(self) -> float:
        """Length of the window of arrivals."""
        return max(self.arrivals_end_s - self.start_s, 0.0)

    @property
    def arrived(self) -> Mask:
        """The requests that arrived in the window."""
        mask: Mask = self.requests["arrival_s"] >= self.start_s
        return mask

    @property
    def ended(self) -> Mask:
        """The requests that finished in the window."""
        mask: Mask = (self.requests["state"] == "finished") & (self.requests["end_s"] > self.start_s)
        return mask

    def emitted_by_span(self, edges_s: Float64Array) -> Float64Array:
        """The output tokens that came between each two successive edges within the measured window.

        How many in all is exact; steps say when, to a twentieth of the window, between which tokens come evenly.
        """
        if len(edges_s) == 2 and (edges_s[0], edges_s[1]) == (self.start_s, self.end_s):
            return np.array([float(self.emitted_tokens)])
        between: Float64Array = np.diff(np.interp(edges_s, *self._emitted_until))
        return between


def _emitted_until(run: MeasuredRun) -> tuple[Float64Array, Float64Array]:
    """Times of the measured window, and how many output tokens had come by each since its start."""
    spans = np.linspace(run.start_s, run.end_s, SECTIONS + 1)
    times_s = np.unique(np.concatenate(([0.0, run.arrivals_end_s], spans)))
    if len(times_s) < 2:
        return times_s, np.zeros(len(times_s))
    steps, first_s = run.steps, run.requests["first_token_s"]
    bins = StepBins(steps, int(steps["replica"].max(initial=0)) + 1, times_s)
    decoded = bins.spread(steps["decoding_requests"] * steps["steps"]).sum(axis=0)
    first = came_between(first_s[~np.isnan(first_s)], times_s)
    upto = np.concatenate(([0.0], np.cumsum(decoded + first)))
    upto -= upto[np.searchsorted(times_s, run.start_s)]
    return times_s, upto * (run.emitted_tokens / upto[-1]) if upto[-1] else upto


def came_between(
    times_s: Float64Array, edges_s: Float64Array, amounts: Float64Array | Int64Array | None = None
) -> Float64Array:
    """Amounts of events between each two successive edges, the later one included: steps end when tokens come."""
    span = np.searchsorted(edges_s, times_s, side="left") - 1
    within = (span >= 0) & (span < len(edges_s) - 1)
    weights = None if amounts is None else amounts[within]
    counts: Float64Array = np.bincount(span[within], weights=weights, minlength=len(edges_s) - 1).astype(np.float64)
    return counts
