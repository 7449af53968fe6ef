"""Lengths of which only the order is about right."""

from dataclasses import dataclass, field
from math import exp, log, pi, sin, sqrt
from typing import ClassVar

from policies.bounds import MOST_SEED, check_range
from policies.chance import normal
from policies.prediction import LengthPredictor
from policies.views import RequestView

_CENTRE = log(256)
"""The logarithm of the length that stays where it is, of about the usual size of an output."""


@dataclass(slots=True)
class RankNoise(LengthPredictor):
    """Estimates whose order agrees with that of the true lengths to a given Kendall tau, as a learnt ranking's does.

    The logarithm of a length, counted from that of 256 tokens, is mixed with normal noise in the share
    rho = sin(pi tau / 2), which for normal variables gives that tau; the noise has the deviation of the logarithms seen
    so far. At 1 and -1 the order is exactly the true one and its reverse. Other lengths than lognormal ones, and the
    first few, come near the tau in between.

    Source: own; the law between tau and rho is Kruskal's, JASA 1958.
    """

    sees_truth: ClassVar[bool] = True
    kendall_tau: float = 0.5
    seed: int = 0
    corrected: bool = False
    _count: int = field(default=0, init=False, repr=False)
    _mean: float = field(default=0.0, init=False, repr=False)
    _squares: float = field(default=0.0, init=False, repr=False)
    _estimates: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0, MOST_SEED, "seed")
        if not -1 <= self.kendall_tau <= 1:
            raise ValueError(f"kendall_tau is {self.kendall_tau}, expected a number from -1 to 1")

    def reveal(self, request: RequestView, output_tokens: int) -> None:
        """Draw the noise of this request; the running mean and variance are Welford's."""
        logarithm = log(output_tokens)
        self._count += 1
        change = logarithm - self._mean
        self._mean += change / self._count
        self._squares += change * (logarithm - self._mean)
        deviation = sqrt(self._squares / self._count)
        rho = sin(pi * self.kendall_tau / 2)
        noise = deviation * normal(self.seed, request.number)
        # A centre that moved with the lengths seen so far would put requests of different times out of order.
        mixed = _CENTRE + rho * (logarithm - _CENTRE) + sqrt(1 - rho**2) * noise
        self._estimates[request.number] = exp(mixed)

    def estimate(self, request: RequestView) -> float:
        """The length as mistaken."""
        return self._estimates[request.number]

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Forget the request."""
        self._estimates.pop(request.number, None)
