"""Values measured for some shapes, read at any other: the plane of two dimensions of a kernel."""

import itertools
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEIGHBOURS = 4


@dataclass(frozen=True, slots=True)
class ShapeValues:
    """What stands at a shape; ``measured`` if it was measured itself, ``inside`` if measured shapes surround it."""

    values: NDArray[np.float64]
    measured: bool
    inside: bool


class ShapeGrid:
    """Arrays at points of a plane, interpolated in the logarithms of both dimensions.

    Meant for logarithms of ratios to a physical base. Where the corners around a shape are measured the result is
    bilinear; elsewhere it is the mean of the nearest shapes, weighted by inverse squared distance, and not ``inside``.
    """

    def __init__(self, values: Mapping[tuple[int, int], NDArray[np.float64]]) -> None:
        self._values = dict(values)
        self._axes = tuple(sorted({point[axis] for point in values}) for axis in (0, 1))
        self._points = list(values)
        self._logs = np.log(np.array(self._points, dtype=np.float64))

    def at(self, first: int, second: int) -> ShapeValues:
        """The values at a shape."""
        own = self._values.get((first, second))
        if own is not None:
            return ShapeValues(own, measured=True, inside=True)
        corners = list(itertools.product(self._bracket(0, first), self._bracket(1, second)))
        if corners and all((a, b) in self._values for (a, _), (b, _) in corners):
            total = sum((wa * wb * self._values[a, b] for (a, wa), (b, wb) in corners), np.float64(0.0))
            return ShapeValues(np.asarray(total), measured=False, inside=True)
        return ShapeValues(self._nearest(first, second), measured=False, inside=False)

    def _bracket(self, axis: int, value: int) -> list[tuple[int, float]]:
        """The grid values around ``value`` with their weights; none outside the grid."""
        grid = self._axes[axis]
        index = bisect_left(grid, value)
        if index == len(grid):
            return []
        if grid[index] == value:
            return [(value, 1.0)]
        if index == 0:
            return []
        low, high = grid[index - 1], grid[index]
        weight = float(np.log(value / low) / np.log(high / low))
        return [(low, 1.0 - weight), (high, weight)]

    def _nearest(self, first: int, second: int) -> NDArray[np.float64]:
        squared = ((self._logs - np.log([first, second])) ** 2).sum(axis=1)
        chosen = np.argsort(squared, kind="stable")[:_NEIGHBOURS]
        weights = 1.0 / (squared[chosen] + 1e-9)
        stacked = np.array([self._values[self._points[index]] for index in chosen])
        weights = weights.reshape(-1, *[1] * (stacked.ndim - 1)) * ~np.isnan(stacked)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nansum(weights * np.nan_to_num(stacked), axis=0) / weights.sum(axis=0))
