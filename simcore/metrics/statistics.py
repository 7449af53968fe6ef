"""Mean, percentiles and their confidence intervals, of plain values and of counted gaps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.core.token_gaps import CountedGaps, merged, split
from simcore.metrics.arrays import Float64Array
from simcore.metrics.confidence import LEVEL, METHOD, SECTIONS, enough_for, interval
from simcore.metrics.definitions import PERCENTILES

Statistics = dict[str, Any]

_LOW_BITS = 24


def of_values(values: Float64Array) -> Statistics:
    """Statistics of values in order of arrival, NaN left out; every figure is None if there is none."""
    values = values[np.isfinite(values)]
    if not len(values):
        return _statistics(0, {}, {})
    sections = np.array_split(values, SECTIONS) if enough_for(None, len(values)) else []
    figures = {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}
    spread = {"mean": [float(section.mean()) for section in sections]}
    ranks = list(PERCENTILES.values())
    figures |= zip(PERCENTILES, map(float, np.percentile(values, ranks)), strict=True)
    by_section = [np.percentile(section, ranks) for section in sections]
    for index, (name, percent) in enumerate(PERCENTILES.items()):
        if enough_for(percent, len(values)):
            spread[name] = [float(section[index]) for section in by_section]
    return _statistics(len(values), figures, spread)


def brief(values: Float64Array) -> dict[str, float | None]:
    """Mean, median and P99 of values, NaN left out; None where there is none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {"mean": None, "p50": None, "p99": None}
    p50, p99 = np.percentile(known, [50, 99]).tolist()
    return {"mean": float(known.mean()), "p50": p50, "p99": p99}


def of_gaps(gaps: Sequence[Sequence[CountedGaps]], whole: CountedGaps, requests: int) -> Statistics:
    """Statistics of the token gaps of so many requests.

    ``gaps`` has them per replica as chunks in order of time, ``whole`` all together. Gaps of one request are far from
    independent, so there are no intervals where the requests are too few for one of a mean over them.
    """
    total = int(whole.counts.sum())
    if not total:
        return _statistics(0, {}, {})
    sections: list[CountedGaps] = []
    if enough_for(None, requests) and enough_for(None, total):
        per_replica = [split(chunks, SECTIONS) for chunks in gaps if any(len(chunk.counts) for chunk in chunks)]
        sections = [merged([pieces[index] for pieces in per_replica]) for index in range(SECTIONS)]
    if not all(section.counts.size for section in sections):
        sections = []
    figures = {
        "mean": _mean_s(whole),
        "min": float(whole.gaps_ns[0] / NS_PER_S),
        "max": float(whole.gaps_ns[-1] / NS_PER_S),
    }
    spread = {"mean": [_mean_s(section) for section in sections]}
    for name, percent in PERCENTILES.items():
        figures[name] = _percentile_s(whole, percent)
        if enough_for(percent, total):
            spread[name] = [_percentile_s(section, percent) for section in sections]
    return _statistics(total, figures, spread)


def _statistics(count: int, figures: dict[str, float], spread: dict[str, list[float]]) -> Statistics:
    names = ("mean", *PERCENTILES)
    intervals = {name: interval(figures[name], spread[name]) if name in spread else None for name in names}
    return {
        "count": count,
        **{name: figures.get(name) for name in (*names, "min", "max")},
        "ci": {"level": LEVEL, "method": METHOD, **intervals},
    }


def _mean_s(gaps: CountedGaps) -> float:
    # The sum may be beyond 64 bits, so high and low parts of the gaps are summed apart: exact, whatever the order.
    high, low = gaps.gaps_ns >> _LOW_BITS, gaps.gaps_ns & ((1 << _LOW_BITS) - 1)
    total_ns = (int(high @ gaps.counts) << _LOW_BITS) + int(low @ gaps.counts)
    return total_ns / int(gaps.counts.sum()) / NS_PER_S


def _percentile_s(gaps: CountedGaps, percent: float) -> float:
    """The percentile of the gaps, each as often as it was counted, as ``numpy.percentile`` defines it."""
    upto = np.cumsum(gaps.counts)
    place = percent / 100 * (int(upto[-1]) - 1)
    below = int(place)
    lower, upper = gaps.gaps_ns[np.searchsorted(upto, [below, min(below + 1, int(upto[-1]) - 1)], side="right")]
    return float((lower + (place - below) * (upper - lower)) / NS_PER_S)
