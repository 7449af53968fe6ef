"""Smoothing over a grid with holes: the most likely surface given noisy values of some of its points.

A Gaussian Markov random field (Rue & Held, 2005): neighbours along an axis differ by a random step whose variance is
measured along that axis, and an observation by noise. The most likely surface solves one sparse linear system. Holes
are filled from all their neighbours, along each axis as surely as the values along that axis vary little.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg

NOISE = 0.005
"""Standard deviation of a logarithm of latency that surfaces need not follow: all but exact at measured points. Of
0.005, 0.01, 0.02 and 0.04 it predicts held-out points best."""
_LEAST_VARIANCE = 1e-4
_ENOUGH = 8
"""Values beside a step from which its own rise and variance are told."""
_MEDIAN_TO_DEVIATION = 1.4826


def smooth(axes: Sequence[NDArray[np.float64]], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The surface through ``values`` (NaN: no observation) over the grid of ``axes``, whose steps count as given."""
    observed = ~np.isnan(values)
    weights = observed.ravel() / NOISE**2
    precision = sparse.diags_array(weights)
    pull = np.where(observed, values, 0.0).ravel() * weights
    for axis, positions in enumerate(axes):
        if len(positions) > 1:
            own_precision, own_pull = _along(axis, positions, values)
            precision = precision + own_precision
            pull = pull + own_pull
    start = np.where(observed, values, np.nanmean(values)).ravel()
    inverse = sparse.diags_array(1.0 / np.maximum(precision.diagonal(), 1e-12))
    solution, _ = cg(precision.tocsr(), pull, x0=start, rtol=1e-7, maxiter=4000, M=inverse)
    return np.asarray(solution).reshape(values.shape)


def _along(
    axis: int, positions: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """What steps along one axis add to the system: precision, and the pull of the rises expected of them.

    Kernels change tiles at the same counts whatever their other dimensions, so each step has its own expected rise and
    its own variance where enough values stand beside it.
    """
    steps = np.diff(positions)
    rises = np.moveaxis(np.diff(values, axis=axis), axis, 0).reshape(len(steps), -1)
    known = rises[~np.isnan(rises)]
    deviation = _MEDIAN_TO_DEVIATION * float(np.median(np.abs(known))) if known.size else 1.0
    variance = deviation**2 * np.clip(steps / np.median(steps), 0.1, 10.0) + _LEAST_VARIANCE
    expected = np.zeros(len(steps))
    for index, row in enumerate(rises):
        beside = row[~np.isnan(row)]
        if len(beside) >= _ENOUGH:
            expected[index] = np.median(beside)
            own = (_MEDIAN_TO_DEVIATION * float(np.median(np.abs(beside - expected[index])))) ** 2
            share = len(beside) / (len(beside) + _ENOUGH)
            variance[index] = share * own + (1 - share) * variance[index] + _LEAST_VARIANCE
    count = len(positions)
    difference = sparse.diags_array([-np.ones(count - 1), np.ones(count - 1)], offsets=[0, 1], shape=(count - 1, count))
    weighted = difference.T @ sparse.diags_array(1.0 / variance)
    before = int(np.prod(values.shape[:axis]))
    after = int(np.prod(values.shape[axis + 1 :]))
    whole = sparse.kron(sparse.kron(sparse.eye_array(before), weighted @ difference), sparse.eye_array(after))
    pull = np.tile(np.repeat(weighted @ expected, after), before)
    return sparse.csr_array(whole), pull


def isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The non-decreasing sequence nearest to ``values`` in squares (pool adjacent violators)."""
    means: list[float] = []
    counts: list[int] = []
    for value in values:
        means.append(float(value))
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            count = counts[-2] + counts[-1]
            means[-2] = (means[-2] * counts[-2] + means[-1] * counts[-1]) / count
            counts[-2] = count
            means.pop()
            counts.pop()
    return np.repeat(means, counts)
