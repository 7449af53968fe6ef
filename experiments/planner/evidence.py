"""How sure a run is of the share of its requests that kept a limit."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

SECTIONS = 20


@dataclass(frozen=True, slots=True)
class Share:
    """The share of ``requests`` that kept a limit, and how many independent ones they are worth."""

    kept: int
    requests: int
    effective: float

    @classmethod
    def of(cls, kept: NDArray[np.bool_]) -> "Share":
        """The share of requests in order of arrival.

        Neighbours share a queue, so they miss a limit together. Sections of successive requests differ the more, and
        the number of requests is divided by the factor that their spread has over that of independent ones (the design
        effect of cluster samples: Kish, Survey Sampling, 1965, section 5.4).
        """
        count = len(kept)
        missed = count - int(kept.sum())
        effect = 1.0
        if missed and count >= 2 * SECTIONS:
            shares = [1 - float(section.mean()) for section in np.array_split(kept, SECTIONS)]
            mean = missed / count
            independent = mean * (1 - mean) / (count / SECTIONS)
            effect = max(1.0, float(np.var(shares, ddof=1)) / independent) if independent else 1.0
        return cls(count - missed, count, count / effect)

    @property
    def value(self) -> float | None:
        """The share itself; None of no requests."""
        return self.kept / self.requests if self.requests else None

    def interval(self, deviates: float) -> tuple[float, float]:
        """The bounds that the true share lies within, so many normal deviates on either side (Wilson, JASA 1927)."""
        if not self.requests:
            return 0.0, 1.0
        share, count, squared = self.kept / self.requests, self.effective, deviates * deviates
        centre = share + squared / (2 * count)
        half = deviates * sqrt(share * (1 - share) / count + squared / (4 * count * count))
        return max((centre - half) / (1 + squared / count), 0.0), min((centre + half) / (1 + squared / count), 1.0)
