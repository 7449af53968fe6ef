"""GEMMs: a table over (n, k), a latency curve over tokens for each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.cost.calibrated.base import Rates, gemm_work
from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import CurvePrice, Source
from simcore.cost.calibrated.shape_grid import ShapeGrid
from simcore.cost.calibrated.table import KernelTable, without_gaps

GEMM_KEYS = ("dtype", "tokens_multiple_of", "n", "k")
_GRID_SHAPES = 64
"""A table of fewer (n, k) is a list of shapes, not a grid."""


@dataclass(frozen=True, slots=True)
class GemmPrice:
    """A (tokens, k) x (k, n) GEMM.

    Kernels of some dtypes are fast only for token counts that are a multiple of ``multiple_of``; all others take
    ``odd``. Engines that pad batches to captured graph sizes should price the padded count.
    """

    even: CurvePrice
    odd: CurvePrice
    multiple_of: int

    @property
    def source(self) -> Source:
        """Where the price comes from."""
        return self.even.source

    @property
    def errors(self) -> ErrorQuantiles:
        """Held-out errors of the table."""
        return self.even.errors

    def errors_at(self, tokens: int) -> ErrorQuantiles:
        """The same, whatever the tokens."""
        return self.errors

    def seconds(self, tokens: int) -> float:
        """One GEMM over ``tokens`` rows."""
        return (self.odd if tokens % self.multiple_of else self.even).curve.at(tokens)

    def seconds_many(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same for each of many token counts."""
        return np.where(tokens % self.multiple_of, self.odd.curve.at_many(tokens), self.even.curve.at_many(tokens))

    def inside(self, tokens: int) -> bool:
        """Whether shape and token count lie in the calibrated range."""
        return self.even.shape_inside and 1 <= tokens <= self.even.curve.last


class GemmTable:
    """All GEMMs of a profile."""

    def __init__(self, table: KernelTable, rates: dict[str, Rates], errors: dict[str, ErrorQuantiles]) -> None:
        self._knots = table.knots
        self._rates = rates
        self._errors = errors
        ratios: dict[tuple[str, int], dict[tuple[int, int], NDArray[np.float64]]] = {}
        for (dtype, multiple_of), (shapes, latency_s) in table.families(2).items():
            n, k = shapes.T[:, :, None]
            base = rates[str(dtype)].seconds(*gemm_work(str(dtype), table.knots, n, k))
            ratio = without_gaps(table.knots, np.log(latency_s / base))
            ratios[str(dtype), int(multiple_of)] = dict(zip(map(tuple, shapes.tolist()), ratio, strict=True))
        self._grids = {key: ShapeGrid(values) for key, values in ratios.items()}
        self._is_grid = {key: len(values) >= _GRID_SHAPES for key, values in ratios.items()}
        self.dtypes = tuple(sorted(rates))

    def price(self, dtype: str, n: int, k: int) -> GemmPrice | None:
        """GEMMs of that dtype and shape, None if the dtype was not measured.

        A list of single shapes prices those alone, and others only as extrapolated.
        """
        multiples = sorted(multiple for known, multiple in self._grids if known == dtype)
        if not multiples:
            return None
        curves = [self._curve(dtype, multiple, n, k) for multiple in multiples]
        return GemmPrice(curves[-1], curves[0], multiples[-1])

    def _curve(self, dtype: str, multiple_of: int, n: int, k: int) -> CurvePrice:
        found = self._grids[dtype, multiple_of].at(n, k)
        known = ~np.isnan(found.values)
        knots = self._knots[known]
        rates = self._rates[dtype]
        curve = Curve.along(lambda tokens: rates.seconds(*gemm_work(dtype, tokens, n, k)), knots, found.values[known])
        grid = self._is_grid[dtype, multiple_of]
        source = Source.CALIBRATED if grid or not found.measured else Source.IMPORTED
        return CurvePrice(curve, source, self._errors[dtype], found.inside)
