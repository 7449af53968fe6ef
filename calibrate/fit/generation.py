"""Attention of decodes: a smooth surface over (KV dtype, group, KV heads, batch, context) for each kind of heads."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import (
    attention_families,
    by_group,
    fit_rates,
    on_grid,
    reached,
    split_by,
)
from calibrate.fit.smooth import isotonic, smooth
from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates, generation_work
from simcore.cost.calibrated.generation import GENERATION_KEYS, GenerationTable

GRID = ("kv_dtype", "group", "kv_heads", "batch", "context")
BLOCKS = ((2, 3),)
"""Axes whose product counts: KV heads times requests are the blocks of a launch, each for a whole group."""


class GenerationFit(KindFit):
    """Tables of ``simcore.cost.calibrated.generation.GenerationTable``."""

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        samples = samples.select(samples.columns["context"] > 0)
        builder = TableBuilder(GENERATION_KEYS)
        rates = {}
        for (kv_dtype,), own in split_by(samples, ["kv_dtype"]):
            columns = own.columns
            shape = (columns["heads"], columns["kv_heads"], columns["head_dim"])
            lengths = (columns["batch"] * 1.0, columns["context"] * 1.0, columns["window"])
            work = generation_work(kv_dtype, *shape, *lengths)
            rates[kv_dtype] = fit_rates(own.latency_s, *work)
        for family, of_family in attention_families(samples):
            self._add(builder, family, of_family, rates)
        return Fitted(builder.build(), rates)

    def _add(
        self, builder: TableBuilder, family: tuple[int, int], samples: SampleTable, all_rates: dict[str, Rates]
    ) -> None:
        head_dim, window = family
        (kv_dtypes, groups, kv_heads, batches, contexts), logs = on_grid(by_group(samples), GRID)
        base = np.empty_like(logs)
        for index, kv_dtype in enumerate(kv_dtypes.tolist()):
            group, kv, batch, context = np.meshgrid(groups, kv_heads, batches, contexts * 1.0, indexing="ij")
            work = generation_work(kv_dtype, group * kv, kv, head_dim, batch, context, window)
            base[index] = np.log(all_rates[kv_dtype].seconds(*work))
        axes = [np.arange(len(kv_dtypes)) * 1.0, *(np.log(axis) for axis in (groups, kv_heads, batches, contexts))]
        surface = smooth(axes, logs - base, BLOCKS) + base
        measured = reached(~np.isnan(logs))
        for place in map(tuple, np.argwhere(measured.any(axis=-1))):
            d, i, j, k = place
            row = (str(kv_dtypes[d]), head_dim, window, int(groups[i] * kv_heads[j]), int(kv_heads[j]), int(batches[k]))
            latency_s = np.where(measured[place], np.exp(isotonic(surface[place])), np.nan)
            builder.add_thinned(row, contexts, latency_s, np.exp(base[place]))

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
