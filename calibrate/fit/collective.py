"""Collectives: medians of repeats, made monotone in bytes."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import on_grid, split_by
from calibrate.fit.smooth import isotonic
from calibrate.samples import SampleTable
from simcore.cost.calibrated.collectives import COLLECTIVE_KEYS, CollectiveTable


class CollectiveFit(KindFit):
    """Tables of ``simcore.cost.calibrated.collectives``."""

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(COLLECTIVE_KEYS)
        for row, own in split_by(samples, COLLECTIVE_KEYS):
            (sizes,), logs = on_grid(own, ["bytes"])
            builder.add(row, sizes, np.exp(isotonic(logs)))
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
