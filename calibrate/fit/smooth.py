"""Smoothing over a grid with holes: the most likely surface given noisy values of some of its points.

A Gaussian Markov random field (Rue & Held, 2005): neighbours along an axis differ by a random step whose variance is
measured along that axis, and an observation by noise. Steps along two axes at once are another such difference: what
one step adds is about the same a step further along the other axis, so a change of kernels that reaches across the grid
is expected in its holes as well. So are steps between points at which two axes have the same product, if that is what
kernels see of them. The most likely surface solves one sparse linear system. Holes are filled from all their
neighbours, along each axis as surely as the values along that axis vary little.

Kernels change at single steps, which a normal distribution would spread over many: steps follow Student's t
distribution instead, by solving again with each step's weight lowered by how far it went (Lange, Little & Taylor,
Journal of the American Statistical Association, 1989).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg

from calibrate.fit.steps import Steps, steps_of
from simcore.core.errors import ServetwinError

NOISE = 0.005
"""Standard deviation of a logarithm of latency that surfaces need not follow: all but exact at measured points. Of
0.005, 0.03 and 0.06 it predicts held-out points best, or as well, on clean measurements and on noisy ones."""
_DEGREES_OF_FREEDOM = 3.0
_SOLUTIONS = 3
"""Times that the system is solved: more of them lower some median held-out errors a little, and raise some P90."""
_ITERATIONS = 4000
_INTERRUPTED = float(np.log(1.2))
_WITNESSES = 4


def smooth(
    axes: Sequence[NDArray[np.float64]],
    values: NDArray[np.float64],
    alike: Sequence[tuple[int, int]] = (),
    noise: float = NOISE,
) -> NDArray[np.float64]:
    """The surface through ``values`` (NaN: no observation) over the grid of ``axes``, whose steps count as given.

    ``noise`` is the standard deviation that surfaces need not follow, of a logarithm of latency. ``alike`` names pairs
    of axes, in ascending order and both logarithms, whose product is what counts. Values that ``interrupted`` finds are
    no observations. Raises ``ServetwinError`` if the system is not solved.
    """
    all_steps = list(steps_of(axes, values, alike))
    observed = ~np.isnan(values).ravel() & ~interrupted(values.ravel(), all_steps)
    trust = observed / noise**2
    solution = np.where(observed, values.ravel(), np.nanmean(values))
    if not all_steps:
        return solution.reshape(values.shape)
    taken = sparse.vstack([steps.matrix(values.size) for steps in all_steps], format="csr")
    expected = np.concatenate([steps.expected for steps in all_steps])
    variance = np.concatenate([steps.variance for steps in all_steps])
    weight = 1.0 / variance
    for _ in range(_SOLUTIONS):
        weighted = taken.T @ sparse.diags_array(weight)
        precision = sparse.csr_array(weighted @ taken + sparse.diags_array(trust))
        pull = np.where(observed, values.ravel(), 0.0) * trust + weighted @ expected
        inverse = sparse.diags_array(1.0 / np.maximum(precision.diagonal(), 1e-12))
        solution, unsolved = cg(precision, pull, x0=solution, rtol=1e-8, maxiter=_ITERATIONS, M=inverse)
        if unsolved:
            raise ServetwinError(f"no smooth surface through {observed.sum():,} samples in {_ITERATIONS:,} iterations")
        squared = (taken @ solution - expected) ** 2 / variance
        weight = (_DEGREES_OF_FREEDOM + 1.0) / (_DEGREES_OF_FREEDOM + squared) / variance
    return np.asarray(solution).reshape(values.shape)


def interrupted(values: NDArray[np.float64], all_steps: Sequence[Steps]) -> NDArray[np.bool_]:
    """Which of the flattened ``values`` are a fifth or more above what each of four neighbours or more expects.

    A kernel that is slow for its shape has neighbours of that kind; a measurement that something else held up has not.
    """
    least = np.full(len(values), np.inf)
    witnesses = np.zeros(len(values), dtype=np.int64)
    for steps in all_steps:
        if len(steps.plus) > 1:
            continue
        above, below = steps.plus[0], steps.minus[0]
        off = values[above] - values[below] - steps.expected
        known = ~np.isnan(off)
        for places, excess in ((above[known], off[known]), (below[known], -off[known])):
            np.minimum.at(least, places, excess)
            np.add.at(witnesses, places, 1)
    return (witnesses >= _WITNESSES) & (least > _INTERRUPTED)


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
