"""Attention of prompt chunks: a smooth surface over (heads, batch, tokens), or (heads, prefix, tokens).

The latter, of chunks alone, where there are prefixes among the samples; those of several only check the fit.
"""

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
from calibrate.samples import ATTENTION, SampleTable
from simcore.cost.calibrated.base import Rates, context_work
from simcore.cost.calibrated.context import CONTEXT_KEYS, ContextTable


class ContextFit(KindFit):
    """Tables of ``simcore.cost.calibrated.context``."""

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(CONTEXT_KEYS)
        rates = {}
        for (kv_dtype,), own in split_by(samples, ["kv_dtype"]):
            columns = own.columns
            shape = (columns["heads"], columns["kv_heads"], columns["head_dim"])
            full = columns["window"] == 0
            work = context_work(kv_dtype, *shape, 0, columns["batch"] * 1.0, columns["tokens"] + columns["prefix"])
            rates[kv_dtype] = fit_rates(own.latency_s[full], *(amount[full] for amount in work))
            for family, of_family in attention_families(own):
                self._add(builder, kv_dtype, family, of_family, rates[kv_dtype])
        return Fitted(builder.build(), rates)

    def _add(
        self, builder: TableBuilder, kv_dtype: str, family: tuple[int, int], samples: SampleTable, rates: Rates
    ) -> None:
        head_dim, window = family
        level = "prefix" if samples.columns["prefix"].any() else "batch"
        if level == "prefix":
            samples = samples.select(samples.columns["batch"] == 1)
        # Only one number of KV heads stands beside each number of heads where the two are equal.
        alike = bool((samples.columns["heads"] == samples.columns["kv_heads"]).all())
        (heads, kv_heads, levels, tokens), logs = on_grid(samples, ["heads", "kv_heads", level, "tokens"])
        if alike:
            logs = np.einsum("hhlt->hlt", logs)[:, None]
        grid = list(np.meshgrid(heads, kv_heads[:1] if alike else kv_heads, levels, tokens * 1.0, indexing="ij"))
        if alike:
            grid[1] = grid[0]
        batch, prefix = (grid[2], 0.0) if level == "batch" else (1, grid[2] * 1.0)
        flops, moved = context_work(kv_dtype, grid[0], grid[1], head_dim, window, batch, grid[3] + prefix)
        if level == "prefix":
            flops = flops - context_work(kv_dtype, grid[0], grid[1], head_dim, window, 1, prefix)[0]
        base = np.log(rates.seconds(flops, moved))
        spread = levels + 64.0 if level == "prefix" else levels  # prefixes start at none
        axes = [np.log(axis) for axis in (heads, kv_heads[:1] if alike else kv_heads, spread, tokens)]
        surface = smooth(axes, logs - base) + base
        measured = below_a_measured(~np.isnan(logs))
        for i, j, k in np.argwhere(measured.any(axis=3)):
            latency_s = np.exp(isotonic(surface[i, j, k]))
            at = (int(levels[k]), 0) if level == "batch" else (1, int(levels[k]))
            row = (kv_dtype, head_dim, window, int(heads[i]), int(grid[1][i, j, 0, 0]), *at)
            latency_s = np.where(measured[i, j, k], latency_s, np.nan)
            builder.add_thinned(row, tokens, latency_s, np.exp(base[i, j, k]))

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``."""
        table = ContextTable(fitted.table, fitted.rates, UNKNOWN)
        prices = {}
        result = np.full(len(samples), np.nan)
        rows = zip(*(samples.columns[name].tolist() for name in (*ATTENTION, "tokens", "prefix", "batch")), strict=True)
        for index, (*shape, tokens, prefix, batch) in enumerate(rows):
            key = tuple(shape)
            if key not in prices:
                prices[key] = table.price(*shape)
            price = prices[key]
            if price is not None:
                result[index] = price.seconds(tokens, prefix, batch)
        return result
