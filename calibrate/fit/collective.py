"""Collectives: a smooth surface over (ranks, bytes) for each operation and implementation, monotone in bytes."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import on_grid, split_by
from calibrate.fit.smooth import isotonic, smooth
from calibrate.samples import SampleTable
from simcore.cost.calibrated.collectives import COLLECTIVE_KEYS, CollectiveTable


class CollectiveFit(KindFit):
    """Tables of ``simcore.cost.calibrated.collectives``."""

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(COLLECTIVE_KEYS)
        for family, own in split_by(samples, COLLECTIVE_KEYS[:-1]):
            (ranks, sizes), logs = on_grid(own, ["ranks_per_node", "bytes"])
            # Each number of ranks has a latency and a rate of its own; the rest varies little with either axis.
            latency_s = np.exp(logs)
            floor_s = np.nanmin(latency_s, axis=1, keepdims=True)
            base = np.log(floor_s + sizes / np.nanmax(sizes / latency_s, axis=1, keepdims=True))
            surface = smooth([np.log(ranks), np.log1p(sizes)], logs - base) + base
            for count, known, row in zip(ranks.tolist(), ~np.isnan(logs), surface, strict=True):
                measured = sizes <= sizes[known][-1]
                builder.add((*family, count), sizes[measured], np.exp(isotonic(row[measured])))
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
