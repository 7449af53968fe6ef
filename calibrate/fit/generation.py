"""Attention of decodes: a smooth surface over (heads, batch, context) for each number of KV heads."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import (
    attention_families,
    below_a_measured,
    fit_rates,
    on_grid,
    split_by,
)
from calibrate.fit.smooth import isotonic, smooth
from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates, generation_work
from simcore.cost.calibrated.generation import GENERATION_KEYS, GenerationTable

_LEAST_CONTEXT = 16
"""Shorter contexts are left out: they cost what this one does."""


class GenerationFit(KindFit):
    """Tables of ``simcore.cost.calibrated.generation.GenerationTable``."""

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        samples = samples.select(samples.columns["context"] >= _LEAST_CONTEXT)
        builder = TableBuilder(GENERATION_KEYS)
        rates = {}
        for (kv_dtype,), own in split_by(samples, ["kv_dtype"]):
            columns = own.columns
            shape = (columns["heads"], columns["kv_heads"], columns["head_dim"])
            lengths = (columns["batch"] * 1.0, columns["context"] * 1.0, columns["window"])
            work = generation_work(kv_dtype, *shape, *lengths)
            rates[kv_dtype] = fit_rates(own.latency_s, *work)
            for family, of_family in attention_families(own):
                self._add(builder, kv_dtype, family, of_family, rates[kv_dtype])
        return Fitted(builder.build(), rates)

    def _add(
        self, builder: TableBuilder, kv_dtype: str, family: tuple[int, int], samples: SampleTable, rates: Rates
    ) -> None:
        head_dim, window = family
        alike = bool((samples.columns["heads"] == samples.columns["kv_heads"]).all())
        (heads, kv_heads, batches, contexts), logs = on_grid(samples, ["heads", "kv_heads", "batch", "context"])
        if alike:
            logs = np.einsum("hhbc->hbc", logs)[:, None]
        grid = list(np.meshgrid(heads, kv_heads[:1] if alike else kv_heads, batches, contexts * 1.0, indexing="ij"))
        if alike:
            grid[1] = grid[0]
        work = generation_work(kv_dtype, grid[0], grid[1], head_dim, grid[2], grid[3], window)
        base = np.log(rates.seconds(*work))
        axes = [np.log(axis) for axis in (heads, kv_heads[:1] if alike else kv_heads, batches, contexts)]
        surface = smooth(axes, logs - base) + base
        measured = below_a_measured(~np.isnan(logs))
        for i, j, k in np.argwhere(measured.any(axis=3)):
            latency_s = np.exp(isotonic(surface[i, j, k]))
            row = (kv_dtype, head_dim, window, int(heads[i]), int(grid[1][i, j, 0, 0]), int(batches[k]))
            latency_s = np.where(measured[i, j, k], latency_s, np.nan)
            builder.add_thinned(row, contexts, latency_s, np.exp(base[i, j, k]))

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``."""
        table = GenerationTable(fitted.table, fitted.rates, UNKNOWN)
        names = ("kv_dtype", "heads", "kv_heads", "head_dim", "window")
        prices = {}
        result = np.full(len(samples), np.nan)
        rows = zip(*(samples.columns[name].tolist() for name in (*names, "batch", "context")), strict=True)
        for index, (*shape, batch, context) in enumerate(rows):
            key = tuple(shape)
            if key not in prices:
                prices[key] = table.price(*shape)
            price = prices[key]
            if price is not None:
                result[index] = price.seconds(batch, batch * context)
        return result
