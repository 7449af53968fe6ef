"""Experts: a smooth surface over (routing, tensor parallel, expert parallel, tokens) for each model and dtype."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import fit_rates, on_grid, split_by
from calibrate.fit.smooth import isotonic, smooth
from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import moe_work
from simcore.cost.calibrated.moe import MOE_KEYS, MoeTable

_MODEL = ("hidden", "intermediate", "experts_per_token", "experts")
_SPLIT = ("distribution", "tensor_parallel", "expert_parallel", "tokens")


class MoeFit(KindFit):
    """Tables of ``simcore.cost.calibrated.moe``."""

    groups = "dtype"

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(MOE_KEYS)
        rates = {}
        for (dtype,), own in split_by(samples, ["dtype"]):
            columns = own.columns
            dims = [columns[name] for name in (*_MODEL, "tensor_parallel", "expert_parallel")]
            rates[dtype] = fit_rates(own.latency_s, *moe_work(dtype, columns["tokens"] * 1.0, *dims))
            for shape, of_model in split_by(own, _MODEL):
                (routings, tps, eps, tokens), logs = on_grid(of_model, _SPLIT)
                grid = np.meshgrid(np.arange(len(routings)), tps, eps, tokens, indexing="ij")
                base = np.log(rates[dtype].seconds(*moe_work(dtype, grid[3] * 1.0, *[*shape, grid[1], grid[2]])))
                axes = [np.arange(len(routings)) * 1.0, *(np.log(axis) for axis in (tps, eps, tokens))]
                surface = smooth(axes, logs - base) + base
                for i, j, k in np.argwhere(~np.isnan(logs).all(axis=3)):
                    latency_s = np.exp(isotonic(surface[i, j, k]))
                    reach = tokens <= tokens[~np.isnan(logs[i, j, k])][-1]
                    row = (dtype, str(routings[i]), *shape, int(tps[j]), int(eps[k]))
                    latency_s = np.where(reach, latency_s, np.nan)
                    builder.add_thinned(row, tokens, latency_s, np.exp(base[i, j, k]))
        return Fitted(builder.build(), rates)

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``."""
        table = MoeTable(fitted.table, fitted.rates, dict.fromkeys(fitted.rates, UNKNOWN))
        names = ("dtype", *_MODEL, "tensor_parallel", "expert_parallel", "distribution")
        prices = {}
        result = np.full(len(samples), np.nan)
        rows = zip(*(samples.columns[name].tolist() for name in (*names, "tokens")), strict=True)
        for index, (*shape, tokens) in enumerate(rows):
            key = tuple(shape)
            if key not in prices:
                prices[key] = table.price(*shape)
            price = prices[key]
            if price is not None:
                result[index] = price.seconds(tokens)
        return result
