"""Attention of prompt chunks: a smooth surface over (KV dtype, group, KV heads, batch or prefix, tokens).

Over prefixes, of chunks alone, where there are any among the samples; those of several only check the fit.
"""

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
from calibrate.samples import ATTENTION, SampleTable
from simcore.cost.calibrated.base import Rates, context_work
from simcore.cost.calibrated.context import CONTEXT_KEYS, ContextTable

BLOCKS = ((1, 2), (1, 3), (2, 3), (3, 4))
"""Axes whose products count: query heads times prompts times tiles of queries are the blocks of a launch."""
BLOCKS_OF_ONE = ((1, 2),)
"""Of single chunks."""


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
        for family, of_family in attention_families(samples):
            self._add(builder, family, of_family, rates)
        return Fitted(builder.build(), rates)

    def _add(
        self, builder: TableBuilder, family: tuple[int, int], samples: SampleTable, all_rates: dict[str, Rates]
    ) -> None:
        head_dim, window = family
        level = "prefix" if samples.columns["prefix"].any() else "batch"
        if level == "prefix":
            samples = samples.select(samples.columns["batch"] == 1)
        names = ("kv_dtype", "group", "kv_heads", level, "tokens")
        (kv_dtypes, groups, kv_heads, levels, tokens), logs = on_grid(by_group(samples), names)
        group, kv, of_level, length = np.meshgrid(groups, kv_heads, levels, tokens * 1.0, indexing="ij")
        batch, prefix = (of_level, 0.0) if level == "batch" else (1, of_level * 1.0)
        base = np.empty_like(logs)
        for index, kv_dtype in enumerate(kv_dtypes.tolist()):
            shape = (kv_dtype, group * kv, kv, head_dim, window, batch)
            flops, moved = context_work(*shape, length + prefix)
            base[index] = np.log(all_rates[kv_dtype].seconds(flops - context_work(*shape, prefix)[0], moved))
        spread = levels + (64.0 if level == "prefix" else 0.0)  # prefixes start at none
        axes = [np.arange(len(kv_dtypes)) * 1.0, *(np.log(axis * 1.0) for axis in (groups, kv_heads, spread, tokens))]
        blocks = BLOCKS if level == "batch" else BLOCKS_OF_ONE
        surface = smooth(axes, logs - base, blocks) + base
        measured = reached(~np.isnan(logs))
        for place in map(tuple, np.argwhere(measured.any(axis=-1))):
            d, i, j, k = place
            at = (int(levels[k]), 0) if level == "batch" else (1, int(levels[k]))
            row = (str(kv_dtypes[d]), head_dim, window, int(groups[i] * kv_heads[j]), int(kv_heads[j]), *at)
            latency_s = np.where(measured[place], np.exp(isotonic(surface[place])), np.nan)
            builder.add_thinned(row, tokens, latency_s, np.exp(base[place]))

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
