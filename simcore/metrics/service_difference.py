"""The maximal service difference: how far apart two tenants come while both have requests waiting.

W_i(t1, t2) is the service that tenant i gets between two times. The figure is the greatest |W_f(t1, t2) - W_g(t1, t2)|
over all pairs of tenants and all intervals throughout which both are backlogged, that is, have requests waiting for
their first step. This is what the virtual token counter bounds by twice the greater of the prompt weight times the
longest prompt, and of the output weight times the most tokens in a running batch (Sheng et al., OSDI 2024, theorem
4.4). Without such an interval there is no figure: whoever has nothing waiting gets all that it asks for, so a
difference says nothing.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array, Int64Array

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
MOST_TENANTS = 200
"""Tenants whose pairs are looked at: those served most where there are more, as pairs grow by the square."""


def backlogged_throughout(requests: Columns, rows_of: Sequence[Int64Array], times_s: Float64Array) -> BoolArray:
    """Whether tenants, a row each, have requests waiting all the time between each two successive times.

    ``rows_of`` are the rows of the requests of each.
    """
    until_s = np.where(np.isnan(requests["first_scheduled_s"]), requests["end_s"], requests["first_scheduled_s"])
    until_s = np.where(np.isnan(until_s), np.inf, until_s)
    rows = []
    for own in rows_of:
        came, went = np.sort(requests["arrival_s"][own]), np.sort(until_s[own])
        # Nobody waits from when as many went as had come, until the next comes.
        idle = np.concatenate(([0.0], went))
        until = np.concatenate((came, [np.inf]))
        empty = idle < until
        first = np.searchsorted(times_s, idle[empty], "right") - 1
        last = np.searchsorted(times_s, until[empty], "left")
        changes = np.zeros(len(times_s) + 1, dtype=np.int64)
        np.add.at(changes, np.maximum(first, 0), 1)
        np.add.at(changes, last, -1)
        rows.append(np.cumsum(changes)[: len(times_s) - 1] == 0)
    return np.array(rows)


def max_service_difference(service: Float64Array, waiting: BoolArray) -> float | None:
    """The figure, None if no two tenants were backlogged together.

    ``service`` since the start has a row for each tenant and a column for each time, ``waiting`` a column for each span
    between two times. The extremes of W_f - W_g since the start give the difference over any interval within a run of
    spans in which both wait.
    """
    service = np.concatenate((service, service[:, -1:]), axis=1)  # so that the last run too has something after it
    greatest = None
    for one, other in combinations(range(len(service)), 2):
        both = np.concatenate(([False], waiting[one] & waiting[other], [False]))
        bounds = np.flatnonzero(both[1:] != both[:-1])  # where a run begins, and where it ends, in turn
        if len(bounds):
            bounds[1::2] += 1  # the time at which the last span of a run ends is within it
            apart = service[one] - service[other]
            ranges = np.maximum.reduceat(apart, bounds)[::2] - np.minimum.reduceat(apart, bounds)[::2]
            greatest = max(greatest or 0.0, float(ranges.max()))
    return greatest
