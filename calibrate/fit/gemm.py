"""GEMMs: a smooth surface over (tokens, n, k) for each dtype, apart for token counts that kernels favour."""

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import fit_rates, on_grid, split_by
from calibrate.fit.noise import noise_of
from calibrate.fit.smooth import NOISE, isotonic, smooth
from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates, gemm_work
from simcore.cost.calibrated.gemm import GEMM_KEYS, GemmTable

MULTIPLE = 4
"""Tables probe multiples of 16 and their successors; that 4 suffices is what kernels say whose scales must be aligned
to 16 bytes (DeepGEMM's block scales, four to a load) and what the counts 4, 8 and 12 show for those."""
_SPLIT = 0.05
_GRID_SHAPES = 64


class GemmFit(KindFit):
    """Tables of ``simcore.cost.calibrated.gemm``."""

    groups = "dtype"

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``."""
        builder = TableBuilder(GEMM_KEYS)
        all_rates = {}
        for (dtype,), own in split_by(samples, ["dtype"]):
            columns = own.columns
            flops, moved = gemm_work(dtype, columns["tokens"] * 1.0, columns["n"], columns["k"])
            rates = all_rates[dtype] = fit_rates(own.latency_s, flops, moved)
            even = columns["tokens"] % MULTIPLE == 0
            if _favours_multiples(own):
                _add(builder, dtype, 1, own.select(~even), rates)
                _add(builder, dtype, MULTIPLE, own.select(even), rates)
            else:
                _add(builder, dtype, 1, own, rates)
        return Fitted(builder.build(), all_rates)

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``."""
        table = GemmTable(fitted.table, fitted.rates, dict.fromkeys(fitted.rates, UNKNOWN))
        prices = np.full(len(samples), np.nan)
        shapes = np.column_stack([samples.columns["n"], samples.columns["k"]])
        for dtype in np.unique(samples.columns["dtype"]):
            own = samples.columns["dtype"] == dtype
            for n, k in np.unique(shapes[own], axis=0):
                chosen = own & (shapes == (n, k)).all(axis=1)
                price = table.price(str(dtype), int(n), int(k))
                if price is not None:
                    prices[chosen] = price.seconds_many(samples.columns["tokens"][chosen])
        return prices


def _favours_multiples(samples: SampleTable) -> bool:
    """Whether one token more than a multiple costs over 5% on average."""
    (tokens, _, _), logs = on_grid(samples, ["tokens", "n", "k"])
    pairs = [
        index
        for index, count in enumerate(tokens[:-1])
        if count >= 16 and count % MULTIPLE == 0 and tokens[index + 1] == count + 1
    ]
    if not pairs:
        return False
    rises = logs[np.array(pairs) + 1] - logs[pairs]
    return bool(np.nanmean(rises) > _SPLIT)


def _add(builder: TableBuilder, dtype: str, multiple_of: int, samples: SampleTable, rates: Rates) -> None:
    """Fit and add all shapes of one dtype and class of token counts."""
    shapes = len(set(zip(samples.columns["n"].tolist(), samples.columns["k"].tolist(), strict=True)))
    if shapes < _GRID_SHAPES:
        for _, own in split_by(samples, ["n", "k"]):
            _add_grid(builder, dtype, multiple_of, own, rates)
    else:
        _add_grid(builder, dtype, multiple_of, samples, rates)


def _add_grid(builder: TableBuilder, dtype: str, multiple_of: int, samples: SampleTable, rates: Rates) -> None:
    """A table is followed as closely as it agrees with itself: GEMMs are measured once, some on busy machines."""
    (tokens, ns, ks), logs = on_grid(samples, ["tokens", "n", "k"])
    base = np.log(rates.seconds(*gemm_work(dtype, tokens[:, None, None] * 1.0, ns[None, :, None], ks[None, None, :])))
    found = noise_of(samples)
    noise = NOISE if found is None else max(NOISE, found.median)
    surface = smooth([np.log(axis) for axis in (tokens, ns, ks)], logs - base, noise=noise) + base
    for i, n in enumerate(ns):
        for j, k in enumerate(ks):
            if not np.isnan(logs[:, i, j]).all():
                latency_s = np.exp(isotonic(surface[:, i, j]))
                row = (dtype, multiple_of, int(n), int(k))
                builder.add_thinned(row, tokens, latency_s, np.exp(base[:, i, j]))
