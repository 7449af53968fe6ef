"""Norms and activations, which read and write and compute next to nothing: latency over the bytes of one launch."""

from math import log

import numpy as np

from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import CurvePrice, Source
from simcore.cost.calibrated.table import KernelTable

ELEMENTWISE_KEYS = ("operator", "bytes_per_token")
ELEMENTWISE = ("norm", "query_key_norm", "activation", "sampling", "embedding", "rotary_and_kv_write")
"""The operators: a norm with the residual that it adds, one on the heads of queries or keys, that of an MLP, and the
choice of a token by its logits, of which a row counts as a token, the rows of an embedding, and the rotation of queries
and keys with the write of keys and values, half of it a launch."""


class ElementwiseTable:
    """All elementwise kernels of a profile, each at the widths that were measured: the bytes of one token."""

    def __init__(self, table: KernelTable, errors: dict[str, ErrorQuantiles]) -> None:
        self._errors = errors
        self._curves: dict[str, dict[int, Curve]] = {}
        for (operator, width), latency_s in zip(table.rows, table.latency_s, strict=True):
            known = ~np.isnan(latency_s)
            curve = Curve(table.knots[known], latency_s[known]).stretched(int(width))
            self._curves.setdefault(str(operator), {})[int(width)] = curve

    def price(self, operator: str, bytes_per_token: float) -> CurvePrice | None:
        """One launch of an operator of ``ELEMENTWISE`` over the bytes that it moves; None if it was not measured.

        Caches and blocks of threads make widths differ at the same bytes, so one that was not measured takes the price
        of the nearest and counts as extrapolated.
        """
        by_width = self._curves.get(operator)
        if by_width is None:
            return None
        nearest = min(by_width, key=lambda width: abs(log(width / bytes_per_token)))
        errors = self._errors.get(operator, self._errors["all"])
        return CurvePrice(by_width[nearest], Source.IMPORTED, errors, shape_inside=nearest == bytes_per_token)
