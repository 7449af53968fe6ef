"""How long prompts and outputs are: distributions over whole numbers of tokens, given by their quantile functions.

Every length is the quantile of one uniform draw, so one draw is spent per length whatever the distribution, and two
lengths can be correlated through their uniforms alone.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simcore.workload.batch import Int64Array
from simcore.workload.normal import normal_cdf, normal_quantile

Float64Array = NDArray[np.float64]

MAX_TOKENS = 2**31 - 1
"""The longest prompt or output that any workload may hold."""


class LengthDistribution(Protocol):
    """A distribution of lengths in tokens, all at least 1."""

    def quantile(self, uniform: Float64Array) -> Int64Array:
        """The length below or at which a share ``uniform`` (0 to 1) of all lengths lies."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always ``tokens``."""

    tokens: int

    def quantile(self, uniform: Float64Array) -> Int64Array:
        """``tokens``, whatever the share."""
        return np.full(len(uniform), self.tokens, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Each whole number from ``low`` to ``high``, both included, equally likely."""

    low: int
    high: int

    def quantile(self, uniform: Float64Array) -> Int64Array:
        """``low`` plus the share of the range."""
        steps = np.floor(uniform * (self.high - self.low + 1)).astype(np.int64)
        return np.minimum(self.low + steps, self.high)  # a share of 1 belongs to the last step


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Lengths whose logarithm is normal, with standard deviation ``sigma`` about log(``median``).

    It is conditioned on ``min`` <= rounded length <= ``max``: what redrawing every length outside the bounds gives,
    so no mass piles up at them. ``median`` and ``sigma`` describe the distribution before that.
    """

    median: float
    sigma: float
    min: int
    max: int

    def quantile(self, uniform: Float64Array) -> Int64Array:
        """The inverse of the conditioned distribution function, rounded to the nearest whole number."""
        location = np.log(self.median)
        below = normal_cdf((np.log(self.min - 0.5) - location) / self.sigma)
        up_to = normal_cdf((np.log(self.max + 0.5) - location) / self.sigma)
        normal = normal_quantile(below + uniform * (up_to - below))
        # The bounds are already met up to the last bit; clipping undoes that bit and never moves mass.
        tokens: Float64Array = np.clip(np.exp(location + self.sigma * normal), self.min, self.max)
        return np.rint(tokens).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A distribution drawn through stated quantiles, with log(tokens) linear between two neighbours.

    ``shares`` rise from 0 to 1; ``tokens`` are the lengths there and do not fall.
    """

    shares: tuple[float, ...]
    tokens: tuple[int, ...]

    def quantile(self, uniform: Float64Array) -> Int64Array:
        """The interpolated length, rounded to the nearest whole number."""
        logarithm: Float64Array = np.interp(uniform, self.shares, np.log(self.tokens))
        tokens: Int64Array = np.rint(np.exp(logarithm)).astype(np.int64)
        return tokens
