"""Prices of steps from a table of measured ones: what a small machine, or a model nobody calibrated, is simulated by.

The time of a step is taken to be a sum: a function of its tokens, interpolated between the numbers that were measured;
one of its sampled rows; and terms in proportion to decodes, to the tokens before them, to chunks, to the pairs of
tokens of which one attends to the other within them, and to the tokens before those. None is below 0 (Lawson and
Hanson, 1974), and relative errors count, so that short steps matter as much as long ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[np.int64]]

TERMS = ("decoding", "decode_context", "chunks", "chunk_pairs", "chunk_context")
"""Counts of a step that its time is in proportion to."""
_APART = 1.4
"""How much greater a number of tokens must be than the last to be a place of its own between which is interpolated."""
_ROUNDS = 4
_FAR = 0.05
"""A relative error beyond which a measured step counts less: something else ran."""


@dataclass(frozen=True, slots=True)
class StepPrices:
    """Nanoseconds: ``tokens_ns`` at ``token_knots``, ``rows_ns`` at ``row_knots``, and one for each of ``TERMS``."""

    token_knots: Floats
    tokens_ns: Floats
    row_knots: Floats
    rows_ns: Floats
    terms_ns: Floats

    @classmethod
    def fit(cls, steps: Columns, part: str = "step_ns") -> "StepPrices":
        """From the columns of measured steps; ``part`` is the time that is priced, all of it by default."""
        tokens = (steps["decoding"] + steps["chunk_tokens"]).astype(np.float64)
        rows, time_ns = steps["rows"].astype(np.float64), steps[part].astype(np.float64)
        token_knots, row_knots = _knots(tokens), _knots(rows[rows > 0])
        parts = [_hats(tokens, token_knots), _hats(rows, row_knots) * (rows > 0)[:, None]]
        parts += [steps[name].astype(np.float64)[:, None] for name in TERMS]
        design = np.hstack(parts)
        scale = np.maximum(np.abs(design).max(axis=0), 1.0)
        weight = 1.0 / np.maximum(time_ns, 1.0)
        trust = np.ones(len(time_ns))
        for _ in range(_ROUNDS):
            found, _ = nnls(design / scale * (weight * trust)[:, None], time_ns * weight * trust)
            error = np.abs(design / scale @ found - time_ns) * weight
            trust = np.sqrt(np.minimum(1.0, _FAR / np.maximum(error, 1e-12)))
        found = found / scale
        first, second = len(token_knots), len(token_knots) + len(row_knots)
        return cls(token_knots, found[:first], row_knots, found[first:second], found[second:])

    def price_ns(self, steps: Columns) -> Floats:
        """The price of each of some steps."""
        total: Floats = sum(self.terms_of(steps).values(), np.zeros(len(steps["rows"])))
        return total

    def terms_of(self, steps: Columns) -> dict[str, Floats]:
        """The price of each step, term by term."""
        tokens = (steps["decoding"] + steps["chunk_tokens"]).astype(np.float64)
        rows = steps["rows"].astype(np.float64)
        found = {
            "tokens": _hats(tokens, self.token_knots) @ self.tokens_ns,
            "rows": (_hats(rows, self.row_knots) @ self.rows_ns) * (rows > 0),
        }
        return found | {name: steps[name] * price for name, price in zip(TERMS, self.terms_ns.tolist(), strict=True)}

    def inside(self, steps: Columns) -> NDArray[np.bool_]:
        """Whether so many tokens were measured, or more and fewer."""
        tokens = steps["decoding"] + steps["chunk_tokens"]
        within: NDArray[np.bool_] = (tokens >= self.token_knots[0]) & (tokens <= self.token_knots[-1])
        return within


def _knots(values: Floats) -> Floats:
    knots: list[float] = []
    distinct = np.unique(values)
    for value in distinct.tolist():
        if not knots or value >= knots[-1] * _APART:
            knots.append(value)
    if knots and distinct[-1] > knots[-1]:
        knots[-1] = float(distinct[-1])
    return np.array(knots or [1.0])


def _hats(values: Floats, knots: Floats) -> Floats:
    """The share of each knot at each value; beyond the last the last two go on in a line, below the first it holds."""
    hats = np.zeros((len(values), len(knots)))
    if len(knots) == 1:
        hats[:, 0] = 1.0
        return hats
    place = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = (values - knots[place]) / (knots[place + 1] - knots[place])
    share = np.maximum(share, 0.0)
    lines = np.arange(len(values))
    hats[lines, place] = 1.0 - share
    hats[lines, place + 1] = share
    return hats
