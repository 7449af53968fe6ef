"""Collectives: curves made monotone in bytes."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import on_grid, split_by
from calibrate.samples import SampleTable
from simcore.cost.calibrated.collectives import COLLECTIVE_KEYS, CollectiveTable

_LEVEL = 0.3
"""Of 0.25, 0.3, 0.4 and 0.5 what predicts best points left out of those that no held-out error is taken from, over all
accelerators together."""


class CollectiveFit(KindFit):
    """Tables of ``simcore.cost.calibrated.collectives``."""

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(COLLECTIVE_KEYS)
        for row, own in split_by(samples, COLLECTIVE_KEYS):
            (sizes,), logs = on_grid(own, ["bytes"])
            builder.add(row, sizes, np.exp(steady(logs)))
        return Fitted(builder.build())

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``."""
        table = CollectiveTable(fitted.table, UNKNOWN)
        result = np.full(len(samples), np.nan)
        rows = zip(*(samples.columns[name].tolist() for name in (*COLLECTIVE_KEYS, "bytes")), strict=True)
        for index, (operation, implementation, nodes, ranks, size) in enumerate(rows):
            price = table.price(operation, implementation, ranks, nodes)
            if price is not None:
                result[index] = price.seconds(size)
        return result


def steady(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The non-decreasing sequence nearest to ``values``, where it may lie below them rather than above.

    A machine that is busy elsewhere holds small messages up, some ten times as long as they take, and never makes them
    faster: a mean would draw the sizes before and after with them. So each stretch that would fall is levelled at the
    quantile ``_LEVEL`` of its values (pool adjacent violators; Robertson & Wright, Annals of Statistics, 1973).
    """
    pools: list[list[float]] = []
    for value in values.tolist():
        pools.append([value])
        while len(pools) > 1 and _level(pools[-2]) > _level(pools[-1]):
            pools[-2:] = [sorted(pools[-2] + pools[-1])]
    return np.repeat([_level(pool) for pool in pools], [len(pool) for pool in pools])


def _level(ascending: list[float]) -> float:
    return ascending[ceil(_LEVEL * len(ascending)) - 1]
