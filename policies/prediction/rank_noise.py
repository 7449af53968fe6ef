"""Lengths of which only the order is about right."""

from dataclasses import dataclass, field
from math import erf, exp, log, pi, sin, sqrt
from typing import ClassVar

from policies.bounds import MOST_SEED, check_range
from policies.chance import normal, uniform
from policies.prediction import LengthPredictor
from policies.views import RequestView

_CENTRE = log(256)
"""The logarithm of the length that stays where it is, of about the usual size of an output."""
_SAMPLE = 1024
"""Lengths seen so far by which the noise is set."""
_NEIGHBOURS = 2
_LEAST_TAU = 1e-6
"""Below it any noise will do."""
_HALVINGS = 20
_GROWTH = 1.25
"""Of the number of lengths seen, after which the noise is set anew."""


@dataclass(slots=True)
class RankNoise(LengthPredictor):
    """Estimates whose order agrees with that of the true lengths to a given Kendall tau, as a learnt ranking's does.

    Of pairs of requests with different lengths, the share (1 + tau) / 2 is in the right order. The logarithm of a
    length, counted from that of 256 tokens, is mixed in the share rho = sin(pi tau / 2) with normal noise. For lengths
    that are lognormal, noise in the share sqrt(1 - rho^2) gives that tau. For others it is scaled until pairs of a
    sample of the lengths seen so far agree as asked for; the first few dozen estimates only come near that. At 1 and
    -1 the order is exactly the true one and its reverse.

    Source: own; the law between tau and rho is Kruskal's, JASA 1958.
    """

    hears_finished: ClassVar[bool] = True
    sees_truth: ClassVar[bool] = True
    kendall_tau: float = 0.5
    seed: int = 0
    corrected: bool = False
    _count: int = field(default=0, init=False, repr=False)
    _due: int = field(default=1, init=False, repr=False)
    _sample: list[float] = field(default_factory=list, init=False, repr=False)
    _noise: float = field(default=0.0, init=False, repr=False)
    _estimates: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0, MOST_SEED, "seed")
        if not -1 <= self.kendall_tau <= 1:
            raise ValueError(f"kendall_tau is {self.kendall_tau}, expected a number from -1 to 1")

    def reveal(self, request: RequestView, output_tokens: int) -> None:
        """Draw the noise of this request."""
        logarithm = log(output_tokens)
        self._count += 1
        self._keep(logarithm, request.number)
        rho = sin(pi * self.kendall_tau / 2)
        if self._count >= self._due:
            self._due = int(_GROWTH * self._count) + 1
            self._noise = _noise(self._sample, rho, abs(self.kendall_tau))
        # A centre that moved with the lengths seen so far would put requests of different times out of order.
        mixed = _CENTRE + rho * (logarithm - _CENTRE) + self._noise * normal(self.seed, request.number)
        self._estimates[request.number] = exp(mixed)

    def estimate(self, request: RequestView) -> float:
        """The length as mistaken."""
        return self._estimates[request.number]

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Forget the request."""
        self._estimates.pop(request.number, None)

    def _keep(self, logarithm: float, number: int) -> None:
        """Every length so far is in the sample with the same probability (Vitter's algorithm R, ACM TOMS 1985)."""
        if len(self._sample) < _SAMPLE:
            self._sample.append(logarithm)
        elif (place := int(uniform(self.seed, number, 2) * self._count)) < _SAMPLE:
            self._sample[place] = logarithm


def _noise(sample: list[float], rho: float, tau: float) -> float:
    """The noise's deviation with which pairs of the sample that differ agree as asked for."""
    mean = sum(sample) / len(sample)
    deviation = sqrt(sum((logarithm - mean) ** 2 for logarithm in sample) / len(sample))
    steps = range(1, min(_NEIGHBOURS, len(sample) - 1) + 1)
    pairs = ((at, sample[place - step]) for step in steps for place, at in enumerate(sample))
    gaps = [abs(rho * (one - other)) for one, other in pairs if one != other]
    if not gaps or not _LEAST_TAU < tau < 1:
        return deviation * sqrt(max(1 - rho**2, 0.0))
    # Two normal numbers of deviation s differ by less than a gap, either way, with probability erf(gap / 2s).
    low, high = 0.0, max(gaps) / tau
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if sum(erf(gap / (2 * middle)) for gap in gaps) > tau * len(gaps):
            low = middle
        else:
            high = middle
    return high
