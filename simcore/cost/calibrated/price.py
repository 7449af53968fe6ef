"""What a priced kernel knows of itself."""

from dataclasses import dataclass
from enum import StrEnum

from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles


class Source(StrEnum):
    """Where a price comes from, best first."""

    CALIBRATED = "calibrated"
    """A fit over a grid of measured shapes."""
    IMPORTED = "imported"
    """Measurements of this very shape, without a grid around it."""
    ALPHA_BETA = "alpha-beta"
    """A collective by constants that were fitted on other accelerators with the same kind of links."""
    ROOFLINE = "roofline"
    """No measurement; no price of this package, whose callers fall back to it."""


@dataclass(frozen=True, slots=True)
class CurvePrice:
    """A kernel whose latency depends on one quantity. ``shape_inside`` is False where its shape was extrapolated."""

    curve: Curve
    source: Source
    errors: ErrorQuantiles
    shape_inside: bool

    def seconds(self, x: float) -> float:
        """One kernel at ``x``: tokens, or bytes for a collective."""
        return self.curve.at(x)

    def inside(self, x: float) -> bool:
        """Whether shape and ``x`` lie in the calibrated range."""
        return self.shape_inside and self.curve.inside(x)

    def errors_at(self, x: float) -> ErrorQuantiles:
        """The held-out errors of the fit, the same everywhere."""
        return self.errors
