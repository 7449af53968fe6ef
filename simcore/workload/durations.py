"""How long users think and tools work: distributions over seconds, given by their quantile functions as lengths are."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simcore.workload.normal import normal_cdf, normal_quantile

Float64Array = NDArray[np.float64]


class DurationDistribution(Protocol):
    """A distribution of times in seconds, all at least 0."""

    def quantile(self, uniform: Float64Array) -> Float64Array:
        """The time below or at which a share ``uniform`` (0 to just below 1) of all times lies."""


@dataclass(frozen=True, slots=True)
class FixedTime:
    """Always ``time_s``."""

    time_s: float

    def quantile(self, uniform: Float64Array) -> Float64Array:
        """``time_s``, whatever the share."""
        return np.full(len(uniform), self.time_s)


@dataclass(frozen=True, slots=True)
class UniformTime:
    """Between ``low_s`` and ``high_s``."""

    low_s: float
    high_s: float

    def quantile(self, uniform: Float64Array) -> Float64Array:
        """``low_s`` plus the share of the range."""
        return self.low_s + uniform * (self.high_s - self.low_s)


@dataclass(frozen=True, slots=True)
class ExponentialTime:
    """Memoryless, of mean ``mean_s``."""

    mean_s: float

    def quantile(self, uniform: Float64Array) -> Float64Array:
        """-log(1 - share) times the mean."""
        times: Float64Array = -self.mean_s * np.log1p(-uniform)
        return times


@dataclass(frozen=True, slots=True)
class LognormalTime:
    """Lognormal about ``median_s``; ``sigma`` is the standard deviation of the natural logarithm.

    It is conditioned on ``max_s``: what redrawing every longer time gives.
    """

    median_s: float
    sigma: float
    max_s: float

    def quantile(self, uniform: Float64Array) -> Float64Array:
        """The inverse of the conditioned distribution function."""
        up_to = normal_cdf(np.log(self.max_s / self.median_s) / self.sigma)
        times: Float64Array = self.median_s * np.exp(self.sigma * normal_quantile(uniform * up_to))
        return times
