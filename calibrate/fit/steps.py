"""Differences of a grid's neighbouring values, each with what is expected of it and its variance, measured.

Neighbours stand next to one another along an axis, or, for two axes whose product is what counts (KV heads and
requests, say: both make blocks of threads), at places of the same product. A step taken at two neighbouring places of
a further axis is about the same, which is a difference of four values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_LEAST_VARIANCE = 1e-4
_ENOUGH = 8
"""Values beside a step from which its own rise and variance are told."""
_MEDIAN_TO_DEVIATION = 1.4826
_SAME_PRODUCT = 1e-9

_Places = NDArray[np.int64]
"""Places in the flattened grid: one row per step, one column per place beside it at which the step is taken."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Differences of alike kind: the values at ``plus`` less those at ``minus``, all flat and equally long."""

    plus: tuple[NDArray[np.int64], ...]
    minus: tuple[NDArray[np.int64], ...]
    expected: NDArray[np.float64]
    variance: NDArray[np.float64]

    def taken(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The differences of the flattened ``values``."""
        return _taken(values, self.plus, self.minus)

    def matrix(self, size: int) -> sparse.csr_array:
        """The matrix that takes the differences of a flattened grid of ``size`` values."""
        count = len(self.expected)
        signs = np.repeat([1.0] * len(self.plus) + [-1.0] * len(self.minus), count)
        rows = np.tile(np.arange(count), len(self.plus) + len(self.minus))
        places = np.concatenate([*self.plus, *self.minus])
        return sparse.csr_array((signs, (rows, places)), shape=(count, size))


def steps_of(
    axes: Sequence[NDArray[np.float64]], values: NDArray[np.float64], alike: Sequence[tuple[int, int]]
) -> Iterator[Steps]:
    """The steps of a grid whose observed values tell how they are distributed (NaN: no observation).

    ``alike`` names pairs of axes, in ascending order and both logarithms, whose product is what counts.
    """
    places = np.arange(values.size).reshape(values.shape)
    flat = values.ravel()
    long = [axis for axis, positions in enumerate(axes) if len(positions) > 1]
    for axis in long:
        moved = np.moveaxis(places, axis, 0)
        yield _once(flat, moved[1:], moved[:-1], np.diff(axes[axis]))
        for second in long:
            if second > axis:
                yield from _twice(flat, moved[1:], moved[:-1], second)
    for first, second in alike:
        pairs = _of_same_product(axes[first], axes[second])
        if len(pairs) == 0:
            continue
        moved = np.moveaxis(places, (first, second), (0, 1))
        above, below = moved[pairs[:, 0], pairs[:, 1]], moved[pairs[:, 2], pairs[:, 3]]
        if np.isfinite(_taken(flat, (above,), (below,))).sum() < _ENOUGH:
            continue
        yield _once(flat, above, below, np.ones(len(pairs)))
        for further in range(1, above.ndim):
            yield from _twice(flat, above, below, further)


def _of_same_product(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows (i, j, k, l) where ``first[i] + second[j]`` is ``first[k] + second[l]``, k the next above i that has one."""
    found = []
    for i, low in enumerate(first):
        for j, high in enumerate(second):
            off = np.abs(first[i + 1 :, None] + second[None, :] - low - high) < _SAME_PRODUCT
            if off.any():
                k, other = np.argwhere(off)[0]
                found.append((i + 1 + int(k), int(other), i, j))
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def _taken(
    values: NDArray[np.float64], plus: Sequence[NDArray[np.int64]], minus: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    return np.asarray(sum(values[places] for places in plus) - sum(values[places] for places in minus))


def _once(values: NDArray[np.float64], above: _Places, below: _Places, lengths: NDArray[np.float64]) -> Steps:
    above, below = above.reshape(len(above), -1), below.reshape(len(below), -1)
    expected, variance = _along_one(lengths, _taken(values, (above,), (below,)))
    beside = above.shape[1]
    return Steps((above.ravel(),), (below.ravel(),), np.repeat(expected, beside), np.repeat(variance, beside))


def _twice(values: NDArray[np.float64], above: _Places, below: _Places, axis: int) -> Iterator[Steps]:
    """What steps change by from one place of a further axis to the next; nothing where too few are known."""
    above, below = np.moveaxis(above, axis, 1), np.moveaxis(below, axis, 1)
    plus, minus = (above[:, 1:], below[:, :-1]), (above[:, :-1], below[:, 1:])
    changes = _taken(values, plus, minus)
    if np.isfinite(changes).sum() < _ENOUGH:
        return
    rows = changes.shape[0] * changes.shape[1]
    variance = _along_two(changes.reshape(rows, -1))
    yield Steps(
        (plus[0].ravel(), plus[1].ravel()),
        (minus[0].ravel(), minus[1].ravel()),
        np.zeros(changes.size),
        np.repeat(variance, changes.size // rows),
    )


def _along_one(
    lengths: NDArray[np.float64], rises: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The expected rise and its variance at each step of an axis, whose observed rises are a row of ``rises``.

    Kernels change tiles at the same counts whatever their other dimensions, so each step has its own expected rise and
    its own variance where enough values stand beside it.
    """
    known = rises[~np.isnan(rises)]
    deviation = _MEDIAN_TO_DEVIATION * float(np.median(np.abs(known))) if known.size else 1.0
    variance = deviation**2 * np.clip(lengths / np.median(lengths), 0.1, 10.0) + _LEAST_VARIANCE
    expected = np.zeros(len(lengths))
    for index, row in enumerate(rises):
        beside = row[~np.isnan(row)]
        if len(beside) >= _ENOUGH:
            expected[index] = np.median(beside)
            variance[index] = _shrunk(beside - expected[index], variance[index])
    return expected, variance


def _along_two(changes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of the change that a pair of steps makes together, whose observed ones are a row of ``changes``."""
    of_all = (_MEDIAN_TO_DEVIATION * float(np.nanmedian(np.abs(changes)))) ** 2 + _LEAST_VARIANCE
    variance = np.full(len(changes), of_all)
    for index, row in enumerate(changes):
        beside = row[~np.isnan(row)]
        if len(beside):
            variance[index] = _shrunk(beside, of_all)
    return variance


def _shrunk(deviations: NDArray[np.float64], prior: float) -> float:
    """The variance of few values, drawn towards ``prior`` as there are few."""
    own = (_MEDIAN_TO_DEVIATION * float(np.median(np.abs(deviations)))) ** 2
    share = len(deviations) / (len(deviations) + _ENOUGH)
    return share * own + (1 - share) * prior + _LEAST_VARIANCE
