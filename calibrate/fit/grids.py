"""Samples onto grids: repeats averaged, axes found, knots chosen."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates

TOLERANCE = 0.015
"""How far a table may lie from a fit, as a logarithm, for knots left out: half the target for the median error."""


def split_by(samples: SampleTable, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], SampleTable]]:
    """The samples of each combination of values of some columns, in ascending order."""
    keys = list(zip(*(samples.columns[name].tolist() for name in names), strict=True))
    rows: dict[tuple[Any, ...], list[int]] = {}
    for index, key in enumerate(keys):
        rows.setdefault(key, []).append(index)
    for key in sorted(rows):
        chosen = np.zeros(len(samples), dtype=bool)
        chosen[rows[key]] = True
        yield key, samples.select(chosen)


def on_grid(samples: SampleTable, names: Sequence[str]) -> tuple[list[NDArray[Any]], NDArray[np.float64]]:
    """The values of some columns, and the logarithm of latency at each combination, repeats averaged, else NaN."""
    axes, places = [], []
    for name in names:
        axis, place = np.unique(samples.columns[name], return_inverse=True)
        axes.append(axis)
        places.append(place)
    shape = tuple(len(axis) for axis in axes)
    flat = np.ravel_multi_index(tuple(places), shape)
    total = np.bincount(flat, weights=np.log(samples.latency_s), minlength=int(np.prod(shape)))
    count = np.bincount(flat, minlength=int(np.prod(shape)))
    with np.errstate(invalid="ignore"):
        return axes, (total / np.where(count, count, np.nan)).reshape(shape)


def knots_of(positions: NDArray[Any], values: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    """Which knots to keep so that straight lines between them pass every other within ``tolerance``; the ends stay.

    Split where the line is farthest off, again and again (Ramer, 1972; Douglas & Peucker, 1973).
    """
    kept = np.zeros(len(positions), dtype=bool)
    kept[0] = kept[-1] = True
    pending = [(0, len(positions) - 1)]
    while pending:
        first, last = pending.pop()
        if last - first < 2:
            continue
        inner = slice(first + 1, last)
        line = np.interp(positions[inner], positions[[first, last]], values[[first, last]])
        off = np.abs(values[inner] - line)
        farthest = int(off.argmax())
        if off[farthest] > tolerance:
            kept[first + 1 + farthest] = True
            pending += [(first, first + 1 + farthest), (first + 1 + farthest, last)]
    return kept


def fit_rates(latency_s: NDArray[np.float64], flops: NDArray[np.float64], moved: NDArray[np.float64]) -> Rates:
    """The floor is the fastest hundredth; the rates are what the best tenth of the largest kernels reach."""

    def best(work: NDArray[np.float64]) -> float:
        large = work >= np.quantile(work, 0.8)
        return float(np.quantile(work[large] / latency_s[large], 0.9))

    return Rates(float(np.quantile(latency_s, 0.01)), best(flops), best(moved))


def reached(measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a grid over (KV dtype, group, KV heads, batch or prefix, length) has values to tell.

    That is where a point as far or farther along the last two axes was measured, at the same place on the others, and
    where that very point was measured of a neighbour of a shape that was measured at all: large shapes are measured up
    to smaller batches and shorter lengths, and a step beyond these the neighbour knows more than a line does.
    """
    flipped = measured[..., ::-1, ::-1]
    farther = np.logical_or.accumulate(np.logical_or.accumulate(flipped, axis=-2), axis=-1)[..., ::-1, ::-1]
    of_neighbour = np.zeros_like(measured)
    for axis in range(3):
        own, found = np.moveaxis(measured, axis, 0), np.moveaxis(of_neighbour, axis, 0)
        found[1:] |= own[:-1]
        found[:-1] |= own[1:]
    return np.asarray(farther | of_neighbour & measured.any(axis=(-2, -1), keepdims=True))


def attention_families(samples: SampleTable) -> Iterator[tuple[tuple[int, int], SampleTable]]:
    """Samples of each head dimension and window; those with a KV head per query head apart from the others."""
    own = samples.columns["heads"] == samples.columns["kv_heads"]
    for part in (samples.select(own), samples.select(~own)):
        yield from split_by(part, ["head_dim", "window"])


def by_group(samples: SampleTable) -> SampleTable:
    """Samples with a further column ``group``, the query heads of each KV head: what one block of threads shares."""
    group = samples.columns["heads"] // samples.columns["kv_heads"]
    return replace(samples, columns=samples.columns | {"group": group})
