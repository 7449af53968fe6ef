"""What tells whether two tables measured the same kernel: how long one took where the other took as long."""

from collections.abc import Iterable

import numpy as np

from calibrate.fit.held_out import undisturbed
from calibrate.samples import SHAPE_COLUMNS, SampleTable
from simcore.cost.calibrated.document import Repeat


def repeats(tables: Iterable[tuple[str, SampleTable]]) -> list[Repeat]:
    """How named tables of one kind compare with the first that holds the same shapes, by dtype where they have one.

    Of shapes that a table itself holds several times the slowest are compared with the fastest.
    """
    first: dict[tuple[object, ...], tuple[str, float]] = {}
    ratios: dict[tuple[str, str], list[float]] = {}
    for name, samples in tables:
        found = _slowest_to_fastest(samples)
        if found:
            ratios[f"{name}, the slowest", f"{name}, the fastest"] = found
        points = undisturbed(samples)
        shapes = zip(*(points.columns[column].tolist() for column in SHAPE_COLUMNS[points.kind]), strict=True)
        dtypes = points.columns.get("dtype", np.full(len(points), "")).tolist()
        for shape, dtype, latency_s in zip(shapes, dtypes, points.latency_s.tolist(), strict=True):
            beside, earlier_s = first.setdefault(shape, (name, latency_s))
            if beside != name:
                rows = f"{dtype} of {name}" if dtype else name
                ratios.setdefault((rows, beside), []).append(latency_s / earlier_s)
    return [_compared(rows, beside, of_both) for (rows, beside), of_both in ratios.items()]


def _slowest_to_fastest(samples: SampleTable) -> list[float]:
    measured_s: dict[tuple[object, ...], list[float]] = {}
    shapes = zip(*(samples.columns[column].tolist() for column in SHAPE_COLUMNS[samples.kind]), strict=True)
    for shape, latency_s in zip(shapes, samples.latency_s.tolist(), strict=True):
        measured_s.setdefault(shape, []).append(latency_s)
    return [max(found) / min(found) for found in measured_s.values() if len(found) > 1]


def _compared(rows: str, beside: str, ratios: list[float]) -> Repeat:
    p10, median, p90 = (round(float(value), 3) for value in np.quantile(ratios, (0.1, 0.5, 0.9)))
    return Repeat(rows=rows, beside=beside, shapes=len(ratios), p10=p10, median=median, p90=p90)
