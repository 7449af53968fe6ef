"""A latency as a function of one quantity: non-decreasing, piecewise linear."""

from bisect import bisect_right
from collections.abc import Callable
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

_FAR = 64.0
"""How many times the largest measured value a curve follows its base; the last slope goes on from there."""
_STEP = 1.25
"""Knots farther apart than this ratio get others between them."""


class Curve:
    """Seconds over tokens, context tokens or bytes, linear between knots.

    ``at`` and ``at_many`` do the same arithmetic, so their results are equal to the bit. Below ``first`` the price is
    that of ``first``; above ``last`` it is extrapolated.
    """

    __slots__ = ("_slopes", "_slopes_list", "_x", "_x_list", "_y", "_y_list", "first", "last")

    def __init__(self, x: ArrayLike, y: ArrayLike, first: float | None = None, last: float | None = None) -> None:
        """Knots ``x`` ascending with seconds ``y``; the measured range is theirs unless given.

        Falling values are raised to the largest before them.
        """
        knots = np.asarray(x, dtype=np.float64)
        values = np.asarray(y, dtype=np.float64)
        if len(knots) == 0 or np.any(np.diff(knots) <= 0) or knots[0] < 0 or not np.all(values > 0):
            raise ValueError("a curve needs ascending knots and positive latencies")
        values = np.maximum.accumulate(values)
        self.first = float(knots[0]) if first is None else first
        self.last = float(knots[-1]) if last is None else last
        if len(knots) == 1:  # in proportion from there
            knots, values = np.append(knots, 2 * knots[0] + 1.0), np.append(values, 2 * values[0])
        self._x = knots
        self._y = values
        self._slopes = np.diff(self._y) / np.diff(self._x)
        self._x_list: list[float] = self._x.tolist()
        self._y_list: list[float] = self._y.tolist()
        self._slopes_list: list[float] = self._slopes.tolist()

    @classmethod
    def along(
        cls,
        base: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        x: ArrayLike,
        ratio: ArrayLike,
        least_slope: float = 0.0,
    ) -> Self:
        """A curve that follows ``base`` times a ratio whose logarithm, ``ratio``, is known at knots ``x``.

        Between knots the logarithm is linear in that of x, so that the shape of the base, floors and squares included,
        is kept: a straight line between logarithms of latency itself would lie above it (Jensen). Beyond the last knot
        the ratio stays, but each further unit of x takes ``least_slope`` seconds at least.
        """
        knots = np.asarray(x, dtype=np.float64)
        far = knots[-1] * _STEP ** np.arange(1, 1 + np.ceil(np.log(_FAR) / np.log(_STEP)))
        parts = np.ceil(np.log(knots[1:] / knots[:-1]) / np.log(_STEP)).astype(np.int64)
        start = np.repeat(np.log(knots[:-1]), parts)
        width = np.repeat(np.diff(np.log(knots)) / parts, parts)
        place = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        between = np.exp(start + width * place)[place > 0]
        fine = np.unique(np.concatenate([knots, between, far]))
        logs = np.interp(np.log(fine), np.log(knots), np.asarray(ratio, dtype=np.float64))
        values = np.exp(logs) * base(fine)
        beyond = fine > knots[-1]
        at_last = values[~beyond].max()
        values[beyond] = np.maximum(values[beyond], at_last + (fine[beyond] - knots[-1]) * least_slope)
        return cls(fine, values, float(knots[0]), float(knots[-1]))

    def scaled(self, factor: float) -> "Curve":
        """The curve times a positive factor, such as kernels alike and another unit of time."""
        return Curve(self._x, self._y * factor, self.first, self.last)

    def stretched(self, factor: float) -> "Curve":
        """The curve of a quantity that is ``factor`` times as much, such as the context of several ranks alike."""
        return Curve(self._x * factor, self._y, self.first * factor, self.last * factor)

    @property
    def knots(self) -> NDArray[np.float64]:
        """Where the line bends."""
        return self._x

    @property
    def values_s(self) -> NDArray[np.float64]:
        """The latencies at ``knots``."""
        return self._y

    def at(self, x: float) -> float:
        """Seconds at ``x``."""
        knots, values = self._x_list, self._y_list
        index = bisect_right(knots, x) - 1
        if index < 0:
            return values[0]
        if index >= len(self._slopes_list):
            return values[-2] + self._slopes_list[-1] * (x - knots[-2])
        value = values[index] + self._slopes_list[index] * (x - knots[index])
        end = values[index + 1]
        return value if value < end else end  # rounding must not make a curve fall at the next knot

    def along_steps(self, start: int, growth: int, steps: int) -> list[float]:
        """Seconds at ``start + growth``, ``start + 2 growth`` and so on: what ``at`` says, without searching anew."""
        if growth <= 0:
            return [self.at(start)] * steps
        found: list[float] = []
        x, left = start + growth, steps
        while left:
            index = bisect_right(self._x_list, x) - 1
            if index < 0 or index >= len(self._slopes_list):
                found.append(self.at(x))
                x += growth
                left -= 1
                continue
            knot, value, slope = self._x_list[index], self._y_list[index], self._slopes_list[index]
            end = self._y_list[index + 1]
            count = min((ceil(self._x_list[index + 1]) - 1 - x) // growth + 1, left)
            prices = [value + slope * (point - knot) for point in range(x, x + growth * count, growth)]
            if prices[-1] > end:
                prices = [min(price, end) for price in prices]
            found += prices
            x += growth * count
            left -= count
        return found

    def at_many(self, x: ArrayLike) -> NDArray[np.float64]:
        """Seconds at each of ``x``."""
        points = np.asarray(x, dtype=np.float64)
        index = np.searchsorted(self._x, points, side="right") - 1
        last = len(self._slopes) - 1
        beyond = index > last
        index = np.clip(index, 0, last)
        values = self._y[index] + self._slopes[index] * (points - self._x[index])
        values = np.where(beyond, values, np.minimum(values, self._y[index + 1]))
        return np.where(points <= self._x[0], self._y[0], values)

    def inside(self, x: float) -> bool:
        """Whether ``x`` lies in the measured range."""
        return self.first <= x <= self.last
