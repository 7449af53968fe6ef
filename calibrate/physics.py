"""Measurements and fits that no machine can have made, each told in a sentence."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import Fitted
from calibrate.fit.grids import split_by
from calibrate.plausibility import impossible
from calibrate.samples import SHAPE_COLUMNS, SampleTable
from simcore.cost.calibrated.base import gemm_work
from simcore.hardware import Accelerator

Rows = NDArray[np.bool_]

RISES_WITH = {
    "gemm": "tokens",
    "elementwise": "tokens",
    "context_attention": "tokens",
    "generation_attention": "context",
    "collective": "bytes",
}
"""The size with which a kernel of each kind must not become faster, all else equal."""
_SLIP = 100.0
"""Nearer to a thousand than to one, as a ratio of times, what sizes differ by taken off."""
_FALL = -0.1
"""Slope of a falling curve, logarithm over logarithm."""
_RANGE = 8.0
_ENOUGH = 4


@dataclass(frozen=True, slots=True)
class Nonsense:
    """Rows of a table that cannot be, and why."""

    rows: Rows
    sentence: str


def nonsense(samples: SampleTable, accelerator: Accelerator | None) -> list[Nonsense]:
    """What is wrong with samples of one kind; each finding has rows of its own to leave out."""
    found = []
    if accelerator is not None:
        rows = impossible(samples, accelerator)
        if rows.any():
            found.append(
                Nonsense(
                    rows,
                    f"{_first(samples, rows)}: faster than the roofline of {accelerator.name} allows, "
                    f"as {rows.sum():,} of {len(samples):,} samples of {samples.kind} are.",
                )
            )
        found += _whole_slip(samples, accelerator)
    found += _single_slips(samples)
    found += _falling(samples)
    return found


def without_nonsense(samples: SampleTable, accelerator: Accelerator | None) -> tuple[SampleTable, list[str]]:
    """The samples that may be, and a sentence for what was left out."""
    found = nonsense(samples, accelerator)
    bad = np.zeros(len(samples), dtype=bool)
    for each in found:
        bad |= each.rows
    return samples.select(~bad), [each.sentence for each in found]


def broken_fit(kind: str, fitted: Fitted) -> str | None:
    """Why a fit cannot be, None for one that can."""
    table = fitted.table
    known = ~np.isnan(table.latency_s)
    negative = known & (table.latency_s <= 0)
    if negative.any():
        row, knot = np.argwhere(negative)[0]
        shape = _shape(table.keys, table.rows[row])
        return f"The fit of {kind} is {table.latency_s[row, knot]:.3g} s at {shape}: not above 0."
    for row, latency_s in zip(table.rows, table.latency_s, strict=True):
        values = latency_s[~np.isnan(latency_s)]
        if np.any(np.diff(values) < -1e-3 * values[:-1]):
            return f"The fit of {kind} falls where it must rise, at {_shape(table.keys, row)}."
    return None


def _whole_slip(samples: SampleTable, accelerator: Accelerator) -> list[Nonsense]:
    """All the large GEMMs far below the peak."""
    if samples.kind != "gemm":
        return []
    columns = samples.columns
    found = []
    for (dtype,), own in split_by(samples, ["dtype"]):
        peak = accelerator.peak_flops_per_s.get(dtype)
        if peak is None or len(own) < _ENOUGH:
            continue
        of_own = own.columns
        flops, moved = gemm_work(dtype, of_own["tokens"] * 1.0, of_own["n"], of_own["k"])
        bound_s = np.maximum(flops / peak, moved / accelerator.memory_bandwidth_bytes_per_s)
        large = bound_s >= np.quantile(bound_s, 0.8)
        ratio = float(np.median(own.latency_s[large] / bound_s[large]))
        if ratio > _SLIP:
            found.append(
                Nonsense(
                    np.asarray(columns["dtype"] == dtype),
                    f"The large GEMMs in {dtype} take {ratio:,.0f} times what the roofline of {accelerator.name} says: "
                    "milliseconds for microseconds, or another device?",
                )
            )
    return found


def _single_slips(samples: SampleTable) -> list[Nonsense]:
    """Samples hundreds of times as slow, or as fast, as the same kernel at sizes around."""
    size = RISES_WITH.get(samples.kind)
    if size is None:
        return []
    bad = np.zeros(len(samples), dtype=bool)
    for places in _curves(samples, size):
        sizes = np.log(samples.columns[size][places].astype(np.float64))
        logs = np.log(samples.latency_s[places])
        if len(places) < _ENOUGH:
            continue
        for index, place in enumerate(places):
            near = np.argsort(np.abs(sizes - sizes[index]), kind="stable")[1:_ENOUGH]
            rise, farther = logs[index] - logs[near], sizes[index] - sizes[near]  # from none to in proportion
            off = np.maximum(rise - np.maximum(farther, 0.0), np.minimum(farther, 0.0) - rise)
            bad[place] |= bool(np.median(off) > np.log(_SLIP))
    if not bad.any():
        return []
    sentence = (
        f"{_first(samples, bad)}: {_SLIP:,.0f} times or more off what sizes around it take, as {bad.sum():,} samples "
        "are: milliseconds for microseconds?"
    )
    return [Nonsense(bad, sentence)]


def _falling(samples: SampleTable) -> list[Nonsense]:
    """Curves that go down with size, over a range and points that leave no doubt."""
    size = RISES_WITH.get(samples.kind)
    if size is None:
        return []
    found = []
    for places in _curves(samples, size):
        values = samples.columns[size][places].astype(np.float64)
        logs = np.log(samples.latency_s[places])
        if len(set(values.tolist())) < _ENOUGH or values.max() < _RANGE * max(values.min(), 1.0):
            continue
        slope = np.polyfit(np.log(np.maximum(values, 1.0)), logs, 1)[0]
        if slope < _FALL and logs[values.argmax()] < logs[values.argmin()]:
            rows = np.zeros(len(samples), dtype=bool)
            rows[places] = True
            found.append(Nonsense(rows, f"{_first(samples, rows)}: falls as {size} grow, where it must rise."))
    return found


def _curves(samples: SampleTable, size: str) -> list[NDArray[np.int64]]:
    """Places of the samples that differ in their size alone."""
    others = [name for name in SHAPE_COLUMNS[samples.kind] if name != size]
    rows: dict[tuple[object, ...], list[int]] = {}
    for place, key in enumerate(zip(*(samples.columns[name].tolist() for name in others), strict=True)):
        rows.setdefault(key, []).append(place)
    return [np.array(places) for places in rows.values()]


def _first(samples: SampleTable, rows: Rows) -> str:
    """The first of some rows, in words."""
    place = int(rows.argmax())
    shape = ", ".join(f"{name} {samples.columns[name][place]}" for name in SHAPE_COLUMNS[samples.kind])
    return f"{samples.kind} ({shape}) in {samples.latency_s[place]:.3g} s"


def _shape(keys: tuple[str, ...], row: tuple[object, ...]) -> str:
    return ", ".join(f"{key} {value}" for key, value in zip(keys, row, strict=True))
