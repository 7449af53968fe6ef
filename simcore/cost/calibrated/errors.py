"""How far prices are from measurements that the fit had not seen."""

from dataclasses import dataclass

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""The quantiles that a profile states."""


@dataclass(frozen=True, slots=True)
class ErrorQuantiles:
    """Errors over ``points`` held-out grid points, each the logarithm of price over measurement (0.03 is 3% too dear).

    ``quantiles`` are those of the signed errors at ``LEVELS``; ``median`` and ``p90`` those of the absolute relative
    errors; ``bias`` is the mean signed error. ``within_3_percent`` and ``within_10_percent`` are shares of the points;
    unlike quantiles, those of several profiles add up to one of all. None: a profile that does not state them.
    """

    points: int
    median: float
    p90: float
    bias: float
    quantiles: tuple[float, ...]
    within_3_percent: float | None = None
    within_10_percent: float | None = None
