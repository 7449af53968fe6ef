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

NOISE = 0.02
"""Standard deviation of a logarithm of latency that surfaces need not follow: about the spread of repeats."""
_LEAST_VARIANCE = 1e-6
_MEDIAN_TO_DEVIATION = 1.4826


def smooth(axes: Sequence[NDArray[np.float64]], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The surface through ``values`` (NaN: no observation) over the grid of ``axes``, whose steps count as given."""
    observed = ~np.isnan(values)
    precision = sparse.csr_array((values.size, values.size))
    for axis, positions in enumerate(axes):
        if len(positions) > 1:
            precision = precision + _along(axis, positions, values)
    weights = observed.ravel() / NOISE**2
    matrix = (precision + sparse.diags_array(weights)).tocsr()
    start = np.where(observed, values, np.nanmean(values)).ravel()
    known = np.where(observed, values, 0.0).ravel() * weights
    inverse = sparse.diags_array(1.0 / np.maximum(matrix.diagonal(), 1e-12))
    solution, _ = cg(matrix, known, x0=start, rtol=1e-7, maxiter=4000, M=inverse)
    return np.asarray(solution).reshape(values.shape)


def _along(axis: int, positions: NDArray[np.float64], values: NDArray[np.float64]) -> sparse.csr_array:
    """The precision that steps along one axis add."""
    steps = np.diff(positions)
    differences = np.abs(np.diff(values, axis=axis))
    known = differences[~np.isnan(differences)]
    deviation = _MEDIAN_TO_DEVIATION * float(np.median(known)) if known.size else 1.0
    variance = deviation**2 * np.clip(steps / np.median(steps), 0.1, 10.0) + _LEAST_VARIANCE
    count = len(positions)
    difference = sparse.diags_array(
        [-np.ones(count - 1), np.ones(count - 1)], offsets=[0, 1], shape=(count - 1, count)
    )
    own = difference.T @ sparse.diags_array(1.0 / variance) @ difference
    before = int(np.prod(values.shape[:axis]))
    after = int(np.prod(values.shape[axis + 1 :]))
    return sparse.csr_array(sparse.kron(sparse.kron(sparse.eye_array(before), own), sparse.eye_array(after)))


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
