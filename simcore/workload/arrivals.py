"""When requests arrive: point processes, each a unit-rate sequence of gaps stretched to its rate.

A process is drawn in two steps: gaps of mean 1 ("work"), and the time at which a given amount of work has been
done. The draws thus do not depend on the rate, so two rates can be compared on the same random numbers.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]


class ArrivalProcess(Protocol):
    """A point process that starts at time 0; the first request arrives after the first gap."""

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """The next ``count`` gaps between arrivals, of mean 1."""

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """The time in seconds at which the sum of unit gaps reaches ``work``; never decreasing."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One request every 1 / ``rate_per_s`` seconds."""

    rate_per_s: float

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """Gaps of exactly 1."""
        return np.ones(count)

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """Work over rate."""
        return work / self.rate_per_s


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent, exponentially distributed gaps of mean 1 / ``rate_per_s``."""

    rate_per_s: float

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """Exponential gaps of mean 1."""
        return random.standard_exponential(count)

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """Work over rate."""
        return work / self.rate_per_s


@dataclass(frozen=True, slots=True)
class Gamma:
    """Independent, gamma-distributed gaps: ``cv`` is their standard deviation over their mean.

    ``cv`` 1 is a Poisson process, above 1 bursty, below 1 more regular. The shape is 1 / cv².
    """

    rate_per_s: float
    cv: float

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """Gamma gaps of mean 1."""
        shape = self.cv**-2
        return random.standard_gamma(shape, count) / shape

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """Work over rate."""
        return work / self.rate_per_s


@dataclass(frozen=True, slots=True)
class OnOff:
    """A Poisson process whose rate alternates: ``on_s`` seconds at ``on_rate_per_s``, then ``off_s`` at the other.

    Both phases have fixed lengths and the first is an on-phase. Arrivals are those of a unit-rate Poisson process
    under the change of time by the cumulative rate (Çinlar 1975, "Introduction to Stochastic Processes").
    """

    on_rate_per_s: float
    off_rate_per_s: float
    on_s: float
    off_s: float

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """Exponential gaps of mean 1."""
        return random.standard_exponential(count)

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """The inverse of the cumulative rate, which is linear within each phase."""
        on_work = self.on_rate_per_s * self.on_s
        periods, rest = np.divmod(work, on_work + self.off_rate_per_s * self.off_s)
        within = rest / self.on_rate_per_s
        if self.off_rate_per_s > 0:
            within = np.where(rest <= on_work, within, self.on_s + (rest - on_work) / self.off_rate_per_s)
        return periods * (self.on_s + self.off_s) + within


@dataclass(frozen=True, slots=True)
class AtOnce:
    """All requests at time 0."""

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """Gaps of 1, which take no time."""
        return np.ones(count)

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """0, whatever the work."""
        return np.zeros_like(work)


@dataclass(frozen=True, slots=True)
class Piecewise:
    """A Poisson process with the rate ``rates_per_s[i]`` from ``starts_s[i]`` on, the first of which is 0.

    The last rate, which is then above 0, lasts for ever; with ``period_s`` all begin again when that is over. Arrivals
    are those of a unit-rate process under the change of time by the cumulative rate, as for ``OnOff``.
    """

    starts_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]
    period_s: float | None = None

    def unit_gaps(self, random: np.random.Generator, count: int) -> Float64Array:
        """Exponential gaps of mean 1."""
        return random.standard_exponential(count)

    def seconds_at(self, work: Float64Array) -> Float64Array:
        """The inverse of the cumulative rate, which is linear within each piece."""
        starts, rates = np.array(self.starts_s), np.array(self.rates_per_s)
        end_s = np.inf if self.period_s is None else self.period_s
        work_before = np.concatenate(([0.0], np.cumsum(rates[:-1] * np.diff(starts))))
        periods, rest = np.zeros_like(work), work
        if self.period_s is not None:
            periods, rest = np.divmod(work, work_before[-1] + rates[-1] * (end_s - starts[-1]))
        piece = np.maximum(np.searchsorted(work_before, rest, side="left") - 1, 0)
        since_start = rest - work_before[piece]
        within = np.divide(since_start, rates[piece], out=np.zeros_like(rest), where=rates[piece] > 0)
        length_s = end_s if self.period_s is not None else 0.0
        seconds: Float64Array = periods * length_s + starts[piece] + within
        return seconds
