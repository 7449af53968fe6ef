"""Gated delta rule layers: a smooth surface over (values per key head, key heads, batch, tokens) for each phase."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.fitted import UNKNOWN, Fitted, KindFit, TableBuilder
from calibrate.fit.grids import on_grid, split_by
from calibrate.fit.smooth import isotonic, smooth
from calibrate.samples import SampleTable
from simcore.core.errors import FileError
from simcore.cost.calibrated.linear_attention import (
    LINEAR_ATTENTION_KEYS,
    LINEAR_ATTENTION_PHASES,
    LinearAttentionTable,
)

GRID = ("group", "key_heads", "batch", "tokens")
BLOCKS = ((0, 1), (0, 2), (1, 2))
"""Axes whose products count: a launch keeps a state for each value head of each prompt."""


class LinearAttentionFit(KindFit):
    """Tables of ``simcore.cost.calibrated.linear_attention``."""

    groups = "phase"

    def fit(self, samples: SampleTable) -> Fitted:
        """See ``KindFit``. Raises ``FileError`` where a phase is missing, without which the other has no price."""
        for phase in LINEAR_ATTENTION_PHASES:
            if phase not in samples.columns["phase"]:
                raise FileError(samples.file, f"no linear_attention of phase {phase}, expected both phases")
        builder = TableBuilder(LINEAR_ATTENTION_KEYS)
        group = samples.columns["value_heads"] // samples.columns["key_heads"]
        samples = replace(samples, columns=samples.columns | {"group": group})
        for (phase, *dims), own in split_by(samples, ["phase", "key_head_dim", "value_head_dim"]):
            (groups, key_heads, batches, tokens), logs = on_grid(own, GRID)
            surface = smooth([np.log(axis) for axis in (groups, key_heads, batches, tokens)], logs, BLOCKS)
            for axis in (2, 3):  # what is so already along one axis stays so
                surface = np.apply_along_axis(isotonic, axis, surface)
            reach = _reached(~np.isnan(logs))
            for i, j, k in np.argwhere(reach.any(axis=3)):
                row = (phase, int(key_heads[j]), int(groups[i] * key_heads[j]), *dims, int(batches[k]))
                builder.add(row, tokens, np.where(reach[i, j, k], np.exp(surface[i, j, k]), np.nan))
        return Fitted(builder.build())

    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """See ``KindFit``."""
        table = LinearAttentionTable(fitted.table, UNKNOWN)
        names = ("key_heads", "value_heads", "key_head_dim", "value_head_dim", "phase", "batch", "tokens")
        result = np.full(len(samples), np.nan)
        rows = zip(*(samples.columns[name].tolist() for name in names), strict=True)
        for index, (*shape, phase, batch, tokens) in enumerate(rows):
            price = table.price(*shape)
            if price is not None:
                of_chunks = phase == "context"
                result[index] = (
                    price.chunks_seconds(batch, batch * tokens) if of_chunks else price.decodes_seconds(batch)
                )
        return result


def _reached(measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a point of the same heads that is as far or farther along batch and tokens was measured."""
    flipped = measured[..., ::-1, ::-1]
    return np.asarray(np.logical_or.accumulate(np.logical_or.accumulate(flipped, axis=2), axis=3)[..., ::-1, ::-1])
