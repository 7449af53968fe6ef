"""Gated delta rule layers: curves over each prompt's tokens for batches of prompts, and one over a batch of decodes.

A launch is the causal convolution and the delta rule after it. Between measured batches, latency at the same tokens of
each prompt follows a power of the batch: none where heads leave processors idle, the first where all are busy.
"""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from math import log

import numpy as np

from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import Source
from simcore.cost.calibrated.table import KernelTable

LINEAR_ATTENTION_KEYS = ("phase", "key_heads", "value_heads", "key_head_dim", "value_head_dim", "batch")
LINEAR_ATTENTION_PHASES = ("context", "generation")
"""Prompt chunks, and decodes: one token of each request, so that the table's only knot of them is 1."""
_Shape = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class LinearAttentionPrice:
    """A gated delta rule layer of one shape on one rank, its projections left out.

    ``chunks`` are over the tokens of each prompt, for each of ``batches`` of them; ``decodes`` over requests.
    """

    batches: tuple[int, ...]
    chunks: tuple[Curve, ...]
    decodes: Curve
    source: Source
    errors: ErrorQuantiles

    def chunks_seconds(self, prompts: int, tokens: int) -> float:
        """The kernels over chunks of ``prompts`` prompts with ``tokens`` tokens together, taken as alike; 0 for none.

        In proportion to prompts beyond the largest measured batch, to tokens beyond the longest chunk measured.
        """
        if prompts == 0:
            return 0.0
        batches = self.batches
        each = tokens / prompts
        index = max(bisect_right(batches, prompts) - 1, 0)
        low_s = _seconds(self.chunks[index], each)
        below = batches[index]
        if index + 1 == len(batches):
            return low_s * max(prompts / below, 1.0)
        if prompts <= below:
            return low_s
        high_s = _seconds(self.chunks[index + 1], each)
        return float(low_s * (high_s / low_s) ** (log(prompts / below) / log(batches[index + 1] / below)))

    def decodes_seconds(self, requests: int) -> float:
        """The kernels over one token of each of ``requests``; 0 for none."""
        return _seconds(self.decodes, requests) if requests else 0.0

    def inside_chunks(self, prompts: int, tokens: int) -> bool:
        """Whether measured batches and lengths surround such chunks."""
        batches = self.batches
        if not batches[0] <= prompts <= batches[-1]:
            return False
        index = bisect_right(batches, prompts) - 1
        if not self.chunks[index].inside(tokens / prompts):
            return False
        # Larger batches were measured to shorter lengths of each, but to as many tokens.
        above = min(index + (prompts > batches[index]), len(batches) - 1)
        return tokens <= self.chunks[above].last * batches[above]

    def inside_decodes(self, requests: int) -> bool:
        """Whether measured batches surround that one."""
        return self.decodes.inside(requests)

    def scaled(self, context_factor: float, generation_factor: float) -> "LinearAttentionPrice":
        """The price with chunks and decodes that take so many times as long."""
        chunks = tuple(curve.scaled(context_factor) for curve in self.chunks)
        return replace(self, chunks=chunks, decodes=self.decodes.scaled(generation_factor))


def _seconds(curve: Curve, x: float) -> float:
    """The curve at ``x``, in proportion beyond its last knot: noise in a last slope would grow with the distance."""
    last = curve.last
    return curve.at(x) if x <= last else curve.at(last) * (x / last)


class LinearAttentionTable:
    """Gated delta rule layers of a profile, each with the heads that one rank holds."""

    def __init__(self, table: KernelTable, errors: ErrorQuantiles) -> None:
        chunks: defaultdict[_Shape, dict[int, Curve]] = defaultdict(dict)
        decodes: dict[_Shape, Curve] = {}
        for (phase, *shape), (keys, latency_s) in table.families(5).items():
            batches = keys[:, 0]
            order = np.argsort(batches)
            key_heads, value_heads, *dims = map(int, shape)
            own = key_heads, value_heads, dims[0], dims[1]
            if phase == "generation":
                decodes[own] = Curve(batches[order], latency_s[order, 0])
                continue
            for place in order:
                known = ~np.isnan(latency_s[place])
                chunks[own][int(batches[place])] = Curve(table.knots[known], latency_s[place][known])
        self._prices = {
            shape: LinearAttentionPrice(
                tuple(by_batch), tuple(by_batch.values()), decodes[shape], Source.CALIBRATED, errors
            )
            for shape, by_batch in chunks.items()
            if shape in decodes
        }

    def price(
        self, key_heads: int, value_heads: int, key_head_dim: int, value_head_dim: int
    ) -> LinearAttentionPrice | None:
        """A layer of which a rank holds so many heads; None unless both its phases were measured."""
        return self._prices.get((key_heads, value_heads, key_head_dim, value_head_dim))
