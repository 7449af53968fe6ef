"""Grouped GEMMs of experts: a latency curve over tokens for each shape and split."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from simcore.cost.calibrated.base import Number, Rates, moe_work
from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import CurvePrice, Source
from simcore.cost.calibrated.shape_grid import ShapeGrid, ShapeValues
from simcore.cost.calibrated.table import KernelTable, without_gaps

MOE_KEYS = (
    "dtype",
    "distribution",
    "hidden",
    "intermediate",
    "experts_per_token",
    "experts",
    "tensor_parallel",
    "expert_parallel",
)
_Shape = tuple[int, int, int, int]
_NEIGHBOURS = 4


class MoeTable:
    """All experts' kernels of a profile, for each routing distribution ("balanced", "power_law_1.2", ...)."""

    def __init__(self, table: KernelTable, rates: dict[str, Rates], errors: dict[str, ErrorQuantiles]) -> None:
        self._knots = table.knots
        self._rates = rates
        self._errors = errors
        splits: dict[tuple[str, str], dict[_Shape, dict[tuple[int, int], NDArray[np.float64]]]] = {}
        for (dtype, distribution), (keys, latency_s) in table.families(2).items():
            base_s = self._base_s(str(dtype), table.knots, *keys.T[:, :, None])
            shapes = splits[str(dtype), str(distribution)] = {}
            ratios = without_gaps(table.knots, np.log(latency_s / base_s))
            for (*shape, tp, ep), ratio in zip(keys.tolist(), ratios, strict=True):
                shapes.setdefault(tuple(shape), {})[tp, ep] = ratio
        self._grids = {
            key: {shape: ShapeGrid(values) for shape, values in shapes.items()} for key, shapes in splits.items()
        }

    @property
    def measured(self) -> dict[tuple[str, str], tuple[_Shape, ...]]:
        """The shapes (hidden, intermediate, experts per token, experts) by dtype and routing distribution."""
        return {key: tuple(sorted(shapes)) for key, shapes in self._grids.items()}

    def price(
        self,
        dtype: str,
        hidden: int,
        intermediate: int,
        experts_per_token: int,
        experts: int,
        tensor_parallel: int = 1,
        expert_parallel: int = 1,
        distribution: str = "balanced",
    ) -> CurvePrice | None:
        """The experts that one rank holds, over the tokens of all ranks of the expert-parallel group.

        None if the dtype was not measured. A distribution that was not measured takes another one that was, and counts
        as extrapolated. So does a model that was not measured. It takes the mean
        ratio to flat rates of the measured ones whose logarithmic dimensions are nearest.
        """
        asked = self._grids.get((dtype, distribution))
        shapes = asked or next((own for key, own in sorted(self._grids.items()) if key[0] == dtype), None)
        if shapes is None:
            return None
        wanted = (hidden, intermediate, experts_per_token, experts)
        own = shapes.get(wanted)
        if own is None:
            found = _mean(
                [
                    (shapes[shape].at(tensor_parallel, expert_parallel), weight)
                    for shape, weight in _nearest(shapes, wanted)
                ]
            )
        else:
            found = own.at(tensor_parallel, expert_parallel)
        known = ~np.isnan(found.values)
        curve = Curve.along(
            lambda tokens: self._base_s(dtype, tokens, *wanted, tensor_parallel, expert_parallel),
            self._knots[known],
            found.values[known],
        )
        inside = found.inside and own is not None and asked is not None
        return CurvePrice(curve, Source.CALIBRATED, self._errors[dtype], inside)

    def _base_s(self, dtype: str, tokens: NDArray[np.float64], *shape_and_split: Number) -> NDArray[np.float64]:
        return np.asarray(self._rates[dtype].seconds(*moe_work(dtype, tokens, *shape_and_split)))


def _nearest(shapes: Iterable[_Shape], wanted: _Shape) -> list[tuple[_Shape, float]]:
    """The measured models that are nearest in logarithmic dimensions, with weights by inverse squared distance."""
    squared = {shape: float(np.sum(np.log(np.divide(shape, wanted)) ** 2)) for shape in shapes}
    chosen = sorted(squared, key=lambda shape: (squared[shape], shape))[:_NEIGHBOURS]
    return [(shape, 1.0 / squared[shape]) for shape in chosen]


def _mean(found: list[tuple[ShapeValues, float]]) -> ShapeValues:
    """The weighted mean where values are known."""
    values = np.array([item.values for item, _ in found])
    weights = np.array([[weight] for _, weight in found]) * ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean = np.sum(weights * np.nan_to_num(values), axis=0) / weights.sum(axis=0)
    return ShapeValues(mean, measured=False, inside=False)
