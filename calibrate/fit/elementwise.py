"""Norms and activations: a curve over tokens for each width, made monotone."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import on_grid, split_by
from calibrate.fit.smooth import isotonic, smooth
from calibrate.samples import SampleTable
from simcore.cost.calibrated.elementwise import ELEMENTWISE_KEYS, ElementwiseTable


class ElementwiseFit(KindFit):
    """Tables of ``simcore.cost.calibrated.elementwise``."""

    groups = "operator"

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(ELEMENTWISE_KEYS)
        for row, own in split_by(samples, ELEMENTWISE_KEYS):
            (tokens,), logs = on_grid(own, ["tokens"])
            builder.add(row, tokens, np.exp(isotonic(smooth([np.log(tokens)], logs))))
        return Fitted(builder.build())

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``. Of a width that the table lacks there is no price, since another's stands in for it."""
        table = ElementwiseTable(fitted.table, {"all": UNKNOWN})
        result = np.full(len(samples), np.nan)
        rows = zip(*(samples.columns[name].tolist() for name in (*ELEMENTWISE_KEYS, "tokens")), strict=True)
        for index, (operator, bytes_per_token, tokens) in enumerate(rows):
            price = table.price(operator, bytes_per_token)
            if price is not None and price.shape_inside:
                result[index] = price.seconds(tokens * bytes_per_token)
        return result
