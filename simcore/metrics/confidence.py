"""Confidence intervals for figures of one run, whose requests depend on each other.

Consecutive observations are cut into sections of equal size. The figure is computed in each section; their spread
around the figure of the whole run gives Student's t interval (sectioning: Asmussen and Glynn, Stochastic Simulation,
2007, section III.5; for means this is the method of batch means). Sections must be long against the time over which
the queue forgets, so a short run at high load has intervals that are too narrow.
"""

from collections.abc import Sequence
from math import isfinite, sqrt

import numpy as np

SECTIONS = 20
LEVEL = 0.95
_T_QUANTILE = 2.0930240544083087
"""Below it lie (1 + LEVEL) / 2 of Student's t with SECTIONS - 1 degrees of freedom (tests hold it against SciPy's,
which every run would wait for)."""
METHOD = f"sectioning, {SECTIONS} sections in order of arrival, Student's t"
OBSERVATIONS_BEYOND = 5
"""A percentile has an interval only if a section expects at least so many observations beyond it."""


def interval(whole: float, sections: Sequence[float]) -> list[float] | None:
    """The interval around the figure ``whole``, from its values in all sections; None if a section has none."""
    if not sections or not all(map(isfinite, sections)):
        return None
    spread = float(np.sum((np.asarray(sections) - whole) ** 2))
    if len(sections) != SECTIONS:
        raise ValueError(f"{len(sections)} sections, expected {SECTIONS}")
    half = _T_QUANTILE * sqrt(spread / (len(sections) - 1) / len(sections))
    return [whole - half, whole + half]


def enough_for(percent: float | None, observations: int) -> bool:
    """Whether so many observations suffice for the interval of a percentile, or of the mean (``percent`` None)."""
    per_section = observations / SECTIONS
    if percent is None:
        return per_section >= 2
    return per_section * min(percent, 100 - percent) / 100 >= OBSERVATIONS_BEYOND
