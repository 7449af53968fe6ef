"""Samples onto grids: repeats averaged, axes found, knots chosen."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates

_COMMON_HEADS = frozenset((2, 4, 8, 16, 24, 32, 40, 64))


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


def knots_of(values: NDArray[Any], ratio: float) -> NDArray[np.bool_]:
    """Which of the ascending values to keep so that each is at least ``ratio`` times the one before; the ends stay."""
    kept = np.zeros(len(values), dtype=bool)
    kept[0] = kept[-1] = True
    last = values[0]
    for index, value in enumerate(values[:-1]):
        if value >= ratio * last:
            kept[index] = True
            last = value
    return kept


def fit_rates(latency_s: NDArray[np.float64], flops: NDArray[np.float64], moved: NDArray[np.float64]) -> Rates:
    """The floor is the fastest hundredth; the rates are what the best tenth of the largest kernels reach."""

    def best(work: NDArray[np.float64]) -> float:
        large = work >= np.quantile(work, 0.8)
        return float(np.quantile(work[large] / latency_s[large], 0.9))

    return Rates(float(np.quantile(latency_s, 0.01)), best(flops), best(moved))


def below_a_measured(measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a point as far or farther along the last two axes was measured, at the same place on the others."""
    flipped = measured[..., ::-1, ::-1]
    reached = np.logical_or.accumulate(np.logical_or.accumulate(flipped, axis=-2), axis=-1)
    return np.asarray(reached[..., ::-1, ::-1])


def keeps_heads(heads: NDArray[Any], index: int) -> bool:
    """Whether a table needs a row for these heads: common counts and the ends; others are interpolated."""
    return index in (0, len(heads) - 1) or len(heads) < 6 or int(heads[index]) in _COMMON_HEADS


def attention_families(samples: SampleTable) -> Iterator[tuple[tuple[int, int], SampleTable]]:
    """Samples of each head dimension and window; those with a KV head per query head apart from the others."""
    own = samples.columns["heads"] == samples.columns["kv_heads"]
    for part in (samples.select(own), samples.select(~own)):
        yield from split_by(part, ["head_dim", "window"])
