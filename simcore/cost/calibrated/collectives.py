"""Collectives: latency over bytes, piecewise affine, which is an alpha-beta model per range of sizes."""

import numpy as np

from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import CurvePrice, Source
from simcore.cost.calibrated.table import KernelTable

COLLECTIVE_KEYS = ("operation", "implementation", "nodes", "ranks_per_node")


class CollectiveTable:
    """All collectives of a profile. Sizes are those of the whole buffer (all ranks' parts of a gather together)."""

    def __init__(self, table: KernelTable, errors: ErrorQuantiles) -> None:
        self._errors = errors
        self._curves: dict[tuple[str, str, int], dict[int, Curve]] = {}
        for (operation, implementation, nodes, ranks), latency_s in zip(table.rows, table.latency_s, strict=True):
            known = ~np.isnan(latency_s)
            curve = Curve(table.knots[known], latency_s[known])
            self._curves.setdefault((str(operation), str(implementation), int(nodes)), {})[int(ranks)] = curve

    @property
    def implementations(self) -> tuple[tuple[str, str, int], ...]:
        """The (operation, implementation, nodes) that were measured."""
        return tuple(sorted(self._curves))

    def price(self, operation: str, implementation: str, ranks: int, nodes: int = 1) -> CurvePrice | None:
        """An operation ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv") among ``ranks`` per
        node, by "nccl" or an engine's own kernels, such as "custom_graph"; None if it was not measured.

        Between measured rank counts latency is interpolated over their logarithm; beyond them the nearest is scaled by
        the bytes that cross each link, (n - 1) / n of the buffer, and the shape counts as extrapolated.
        """
        by_ranks = self._curves.get((operation, implementation, nodes))
        if by_ranks is None or ranks < 2:
            return None
        if ranks in by_ranks:
            return CurvePrice(by_ranks[ranks], Source.CALIBRATED, self._errors, shape_inside=True)
        below = max((known for known in by_ranks if known < ranks), default=None)
        above = min((known for known in by_ranks if known > ranks), default=None)
        if below is None or above is None:
            nearest = below if above is None else above
            assert nearest is not None
            scale = (1 - 1 / ranks) / (1 - 1 / nearest)
            curve = by_ranks[nearest]
            stretched = Curve(curve.knots, curve.values_s * max(scale, 1.0))
            return CurvePrice(stretched, Source.CALIBRATED, self._errors, shape_inside=False)
        weight = np.log(ranks / below) / np.log(above / below)
        low, high = by_ranks[below], by_ranks[above]
        knots = np.union1d(low.knots, high.knots)
        values = (1 - weight) * low.at_many(knots) + weight * high.at_many(knots)
        return CurvePrice(Curve(knots, values), Source.CALIBRATED, self._errors, shape_inside=True)
