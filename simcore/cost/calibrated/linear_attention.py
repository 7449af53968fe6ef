"""Gated delta rule layers: curves over each prompt's tokens for batches of prompts, and one over a batch of decodes.

A launch is the causal convolution and the delta rule after it. Between measured batches, latency at the same tokens of
each prompt follows a power of the batch: none where heads leave processors idle, the first where all are busy.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

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

    ``chunks`` are over the tokens of each prompt, for each of ``batches`` of them, of which each was measured to the
    tokens in ``reached``; ``decodes`` are over requests, of which each takes ``least_s_per_request``.
    """

    batches: tuple[int, ...]
    reached: tuple[float, ...]
    chunks: tuple[Curve, ...]
    decodes: Curve
    source: Source
    errors: ErrorQuantiles
    least_s_per_request: float = 0.0

    def launch_seconds(self, chunks: Sequence[int]) -> float:
        """The kernels over chunks of so many tokens each; 0 for none.

        What is done to a prompt's state goes chunk by chunk, whatever runs beside it, so that unlike prompts take no
        less than as many of the longest as have all the tokens.
        """
        if not chunks:
            return 0.0
        tokens = sum(chunks)
        return max(self.chunks_seconds(prompts, tokens) for prompts in _alike(chunks))

    def chunks_seconds(self, prompts: float, tokens: int) -> float:
        """The kernels over chunks of ``prompts`` prompts with ``tokens`` tokens together, taken as alike.

        In proportion to prompts beyond the largest measured batch, to tokens beyond the longest chunk measured.
        """
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
        return max(_seconds(self.decodes, requests), requests * self.least_s_per_request) if requests else 0.0

    def inside_launch(self, chunks: Sequence[int]) -> bool:
        """Whether what chunks of so many tokens each are priced by lies within what was measured."""
        return all(self.inside_chunks(prompts, sum(chunks)) for prompts in _alike(chunks))

    def inside_chunks(self, prompts: float, tokens: int) -> bool:
        """Whether measured batches and lengths surround such chunks."""
        batches = self.batches
        if not batches[0] <= prompts <= batches[-1]:
            return False
        index = bisect_right(batches, prompts) - 1
        if not self.chunks[index].first <= tokens / prompts <= self.reached[index]:
            return False
        # Larger batches were measured to shorter lengths of each, but to as many tokens.
        above = min(index + (prompts > batches[index]), len(batches) - 1)
        return tokens <= self.reached[above] * batches[above]

    def inside_decodes(self, requests: int) -> bool:
        """Whether measured batches surround that one."""
        return self.decodes.inside(requests)

    def scaled(self, context_factor: float, generation_factor: float) -> "LinearAttentionPrice":
        """The price with chunks and decodes that take so many times as long."""
        chunks = tuple(curve.scaled(context_factor) for curve in self.chunks)
        return replace(self, chunks=chunks, decodes=self.decodes.scaled(generation_factor))


def _alike(chunks: Sequence[int]) -> set[float]:
    """How many prompts alike stand for chunks of so many tokens each: as many, and as many of the longest."""
    return {len(chunks), sum(chunks) / max(chunks)}


def _seconds(curve: Curve, x: float) -> float:
    """The curve at ``x``, in proportion beyond its last knot: noise in a last slope would grow with the distance."""
    last = curve.last
    return curve.at(x) if x <= last else curve.at(last) * (x / last)


def _never_falling(knots: NDArray[np.float64], by_batch: Iterable[NDArray[np.float64]]) -> Iterator[Curve]:
    """Curves for batches in ascending order, of which none lies below that of a smaller one.

    Larger batches were measured to shorter lengths; from there on, in proportion, noise at the last could do so.
    """
    before_s = np.zeros(len(knots))
    for latency_s in by_batch:
        known = ~np.isnan(latency_s)
        curve = Curve(knots[known], latency_s[known])
        asked = known | (knots > curve.last)
        values_s = np.maximum([_seconds(curve, float(tokens)) for tokens in knots[asked]], before_s[asked])
        curve = Curve(knots[asked], values_s)
        before_s = curve.at_many(knots)
        yield curve


class LinearAttentionTable:
    """Gated delta rule layers of a profile, each with the heads that one rank holds."""

    def __init__(self, table: KernelTable, errors: ErrorQuantiles) -> None:
        chunks: dict[_Shape, tuple[tuple[int, ...], tuple[float, ...], tuple[Curve, ...]]] = {}
        decodes: dict[_Shape, Curve] = {}
        one = table.knots == 1.0
        for (phase, *shape), (keys, latency_s) in table.families(5).items():
            batches = keys[:, 0]
            order = np.argsort(batches)
            key_heads, value_heads, *dims = map(int, shape)
            own = key_heads, value_heads, dims[0], dims[1]
            if phase == "generation":
                decoding_s = latency_s[order][:, one].ravel()
                known = ~np.isnan(decoding_s)
                if known.any():
                    decodes[own] = Curve(batches[order][known], decoding_s[known])
                continue
            reached = [float(table.knots[~np.isnan(row)][-1]) for row in latency_s[order]]
            curves = _never_falling(table.knots, latency_s[order])
            chunks[own] = tuple(batches[order].tolist()), tuple(reached), tuple(curves)
        self._prices = {
            shape: LinearAttentionPrice(*found, decodes[shape], Source.CALIBRATED, errors)
            for shape, found in chunks.items()
            if shape in decodes
        }

    def price(
        self, key_heads: int, value_heads: int, key_head_dim: int, value_head_dim: int
    ) -> LinearAttentionPrice | None:
        """A layer of which a rank holds so many heads; None unless both its phases were measured."""
        return self._prices.get((key_heads, value_heads, key_head_dim, value_head_dim))
