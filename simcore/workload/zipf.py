"""Choosing by popularity: the i-th most popular of n with a probability in proportion to 1 / i^s."""

import numpy as np
from numpy.typing import NDArray

from simcore.workload.contents import Int64Array, exclusive_sums

Float64Array = NDArray[np.float64]

_WHOLE = 2**51
"""What weights add up to, nearly: whole numbers, so that draws without replacement are exact."""


class ZipfChoice:
    """Choices among ``among``, numbered from the most popular, under Zipf's law with ``exponent`` (0: all alike)."""

    def __init__(self, among: int, exponent: float) -> None:
        popularity = np.arange(1, among + 1, dtype=np.float64) ** -exponent
        shares = popularity / popularity.sum()
        self._weights: Int64Array = np.maximum(np.rint(shares * _WHOLE), 1).astype(np.int64)
        self._below = exclusive_sums(self._weights)

    def distinct(self, uniform: Float64Array, counts: Int64Array) -> Int64Array:
        """In row i the first ``counts[i]`` are different choices, the rest is -1.

        Each is drawn among those that remain, by its share of what remains; it takes one of the draws, 0 to 1, that
        ``uniform`` has in rows.
        """
        chosen = np.full(uniform.shape, -1, dtype=np.int64)
        remaining = np.full(len(counts), self._below[-1])
        for place in range(uniform.shape[1]):
            rows = np.flatnonzero(counts > place)
            point = np.floor(uniform[rows, place] * remaining[rows]).astype(np.int64)
            np.minimum(point, remaining[rows] - 1, out=point)  # a product may round up
            for taken in np.sort(chosen[rows, :place], axis=1).T:
                point += np.where(point >= self._below[taken], self._weights[taken], 0)
            now = np.searchsorted(self._below, point, side="right") - 1
            chosen[rows, place] = now
            remaining[rows] -= self._weights[now]
        return chosen
