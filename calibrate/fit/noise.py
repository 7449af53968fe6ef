"""What no fit can predict: how far measurements are from what their neighbours along two axes agree on."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from calibrate.samples import SHAPE_COLUMNS, SampleTable

_LEAST_SHARE = 0.25
"""Pairs of axes are asked that have four neighbours for so many of the points."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Median and P90 of the absolute noise of one measurement, relative."""

    median: float
    p90: float


def noise_of(points: SampleTable) -> Noise | None:
    """An estimate from the points alone, each shape once; None where too few stand in a grid.

    Of four neighbours at the corners of a rectangle of two axes, the sum of one diagonal less that of the other, in
    logarithms, is four times a noise of independent signs, whatever each axis does by itself: tiles, waves and splits
    that change at the same counts cancel. Half of it has the noise's own deviation. Of all pairs of axes the one with
    the least P90 counts, since what a pair of axes does together adds to it.
    """
    columns = [np.unique(points.columns[name], return_inverse=True)[1] for name in SHAPE_COLUMNS[points.kind]]
    lengths = [int(places.max()) + 2 for places in columns]  # one more, for the neighbour of the last
    strides = np.cumprod([1, *lengths[:-1]])
    keys = sum(places.astype(np.int64) * stride for places, stride in zip(columns, strides, strict=True))
    assert not isinstance(keys, int)
    order = np.argsort(keys)
    keys, logs = keys[order], np.log(points.latency_s[order])

    def beyond(step: int) -> NDArray[np.float64]:
        place = np.minimum(np.searchsorted(keys, keys + step), len(keys) - 1)
        return np.where(keys[place] == keys + step, logs[place], np.nan)

    found = []
    for first, second in combinations([int(stride) for stride in strides], 2):
        half = np.abs(logs - beyond(first) - beyond(second) + beyond(first + second)) / 2
        half = half[~np.isnan(half)]
        if len(half) >= max(_LEAST_SHARE * len(logs), 16):
            found.append(Noise(float(np.median(half)), float(np.quantile(half, 0.9))))
    return min(found, key=lambda noise: noise.p90, default=None)
