"""How much load a setup takes: the same requests at rising rates, until its limits do not hold any more."""

from collections.abc import Sequence

import numpy as np

from dashboard.what_if.setups import Document, with_value
from dashboard.what_if.tasks import Point
from experiments.sweep.rates import holds, rate_path
from simcore.core.errors import InputError, Phrase

MOST_POINTS = 40


def rates_between(least: float, most: float, count: int) -> list[float]:
    """So many rates, each the same factor above the one before, in three digits."""
    if not 0 < least < most:
        raise InputError("the rates", Phrase(f"from {least:g} to {most:g}"), "a least rate above 0 and a greater one")
    if not 2 <= count <= MOST_POINTS:
        raise InputError("the number of rates", count, f"a whole number from 2 to {MOST_POINTS}")
    return sorted({float(f"{rate:.3g}") for rate in np.geomspace(least, most, count)})


def sweep_items(
    document: Document, rates: Sequence[float], replicas: Sequence[int], gpus_per_replica: int
) -> list[tuple[float, int, Document]]:
    """For every number of replicas and every rate: the rate, the GPUs, and the scenario."""
    path = rate_path(document)
    return [
        (rate, count * gpus_per_replica, with_value(with_value(document, "cluster.replicas", count), path, rate))
        for count in replicas
        for rate in rates
    ]


def largest_rates(points: Sequence[Point]) -> dict[int, float | None]:
    """By GPUs, the largest rate up to which every limit held at each rate; None where it failed at the first."""
    found: dict[int, float | None] = {}
    failed: set[int] = set()
    for point in sorted(points, key=lambda point: point.rate_per_s):
        found.setdefault(point.gpus, None)
        if not holds(point.summary):
            failed.add(point.gpus)
        elif point.gpus not in failed:
            found[point.gpus] = point.rate_per_s
    return found
