"""Attention of decode steps: of one, beside prompt chunks or alone, and of many in a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray

from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.token_gaps import StepDurations
from simcore.cost.calibrated import Curve
from simcore.cost.compiled_attention import CompiledAttention, attended_tokens

_SCALAR_STEPS = 24
"""Up to so many steps are priced one by one, which is quicker than an array."""
_WALKED = 8
"""And so many times as many where that is a walk along one curve."""


_Term = tuple[int, int, float, float, float, float, Curve | None]
"""Context tokens held and by how many a step adds to them; time to read and to compute one; the floor; and the time
to read that the requests add, whatever their context. With a curve over context, that alone is the price."""


@dataclass(frozen=True, slots=True)
class _DecodeCurves:
    """Attention of so many requests that decode over their context in total, in nanoseconds, by kind of layers.

    None where the roofline must do. Where it need not, ``windowed`` are the curves with the window that each reads;
    ``only`` is the one curve of a model whose layers all read the whole context.
    """

    by_kind: tuple[Curve | None, ...]
    windowed: tuple[tuple[Curve, int | None], ...]
    only: Curve | None

    def next_step_ns(self, pool: DecodePool) -> float:
        """Attention of the next step of all members, by ``windowed``."""
        total = 0.0
        for curve, index in self.windowed:
            if index is None:
                total += curve.at(pool.context_tokens + pool.size)
            else:
                window = pool.windows[index]
                total += curve.at(window.tokens + window.growing)
        return total


class DecodeAttention:
    """Prices the attention of requests that decode, over all kinds of layers of a model; nanoseconds."""

    def __init__(self, kinds: Sequence[CompiledAttention]) -> None:
        self._kinds = tuple(kinds)
        self._alone: dict[int, _DecodeCurves] = {}
        self._beside: dict[int, _DecodeCurves] = {}
        self._counts = np.arange(1, 4097, dtype=np.float64)

    def steps_ns(self, pool: DecodePool, steps: int, base: float, within_ns: int, more: int) -> StepDurations:
        """See ``StepCost.decode_steps_ns``; ``base`` is what each step takes besides."""
        size, context = pool.size, pool.context_tokens
        curves = self._alone.get(size) or self._curves(self._alone, size)
        curve = curves.only
        if curve is not None and within_ns == FOREVER and 1 < steps <= _WALKED * _SCALAR_STEPS:
            return [round(price + base) for price in curve.along_steps(context, size, steps)]
        if curve is not None:
            first = round(curve.at(context + size) + base)
        elif curves.windowed:
            first = round(curves.next_step_ns(pool) + base)
        else:
            first = _list_ns(self._terms(pool, size, curves), 1, base)[0]
        steps = min(steps, within_ns // first + 1 + more)  # no later step is shorter than the first
        if steps == 1:
            return [first]
        if steps > (_SCALAR_STEPS if curve is None else _WALKED * _SCALAR_STEPS):
            array = self._array_ns(self._terms(pool, size, curves), steps, base)
            return array if within_ns == FOREVER else array[: array.cumsum().searchsorted(within_ns) + 1 + more]
        if curve is None:
            durations = _list_ns(self._terms(pool, size, curves), steps, base)
        else:
            durations = [round(price + base) for price in curve.along_steps(context, size, steps)]
        if within_ns == FOREVER:
            return durations
        enough = len(durations) - more
        excess = sum(durations[:enough]) - within_ns
        while enough > 1 and excess >= durations[enough - 1]:
            enough -= 1
            excess -= durations[enough]
        return durations[: enough + more]

    def step_ns(self, plan: BatchPlan, pool: DecodePool) -> float:
        """Attention of the next step, in which all members decode that are not stalled, beside its chunks."""
        cache = self._beside if plan.chunks else self._alone
        curves = cache.get(plan.decoding) or self._curves(cache, plan.decoding)
        if curves.only is not None and not plan.stalled:
            return curves.only.at(pool.context_tokens + pool.size)
        if curves.windowed and not plan.stalled:
            return curves.next_step_ns(pool)
        return sum(self._by_kind(plan, pool, curves))

    def step_by_kind_ns(self, plan: BatchPlan, pool: DecodePool) -> list[float]:
        """The same for each kind of layers."""
        cache = self._beside if plan.chunks else self._alone
        return self._by_kind(plan, pool, cache.get(plan.decoding) or self._curves(cache, plan.decoding))

    def steps_by_kind_ns(self, pool: DecodePool, steps: int) -> list[float]:
        """The next steps of all members together, for each kind of layers."""
        curves = self._alone.get(pool.size) or self._curves(self._alone, pool.size)
        return [float(self._array_ns([term], steps, 0.0).sum()) for term in self._terms(pool, pool.size, curves)]

    def _by_kind(self, plan: BatchPlan, pool: DecodePool, curves: _DecodeCurves) -> list[float]:
        stalled = [pool.context_of(request.origin) for request in plan.stalled]
        found = []
        for attention, term in zip(self._kinds, self._terms(pool, plan.decoding, curves), strict=True):
            start, growth, memory, compute, floor, queries, curve = term
            context = start + growth
            for tokens in stalled:
                context -= attended_tokens(tokens, attention.work.window_tokens)
            if curve is None:
                found.append(max(context * memory + queries, context * compute, floor))
            else:
                found.append(curve.at(context))
        return found

    def _curves(self, cache: dict[int, _DecodeCurves], decoding: int) -> _DecodeCurves:
        beside_chunks = cache is self._beside
        by_kind = tuple(kind.decode_curve(decoding, beside_chunks) for kind in self._kinds)
        only = by_kind[0] if len(by_kind) == 1 and self._kinds[0].window is None else None
        kinds = zip(by_kind, self._kinds, strict=True)
        windowed = tuple((curve, kind.window) for curve, kind in kinds if curve is not None)
        if len(windowed) < len(by_kind):
            windowed = ()
        curves = cache[decoding] = _DecodeCurves(by_kind, windowed, only)
        return curves

    def _terms(self, pool: DecodePool, decoding: int, curves: _DecodeCurves) -> list[_Term]:
        """The attention of a step in which ``decoding`` members of the pool decode."""
        terms = []
        for attention, curve in zip(self._kinds, curves.by_kind, strict=True):
            memory, compute, floor, per_query = attention.prices
            if attention.window is None:
                start, growth = pool.context_tokens, pool.size
            else:
                window = pool.windows[attention.window]
                start, growth = window.tokens, window.growing
            terms.append((start, growth, memory, compute, floor, decoding * per_query, curve))
        return terms

    def _array_ns(self, terms: list[_Term], steps: int, base: float) -> NDArray[np.int64]:
        """The same prices for many steps, by the same arithmetic in the same order, so equal to the bit."""
        while steps > len(self._counts):
            self._counts = np.arange(1, 2 * len(self._counts) + 1, dtype=np.float64)
        count = self._counts[:steps]
        durations = np.zeros(steps)
        for start, growth, memory, compute, floor, queries, curve in terms:
            context = count * growth
            context += start
            if curve is not None:
                durations += curve.at_many(context)
                continue
            prices = context * memory
            prices += queries
            if compute > memory:
                np.maximum(prices, context * compute, out=prices)
            if prices[0] < floor:
                np.maximum(prices, floor, out=prices)
            durations += prices
        durations += base
        return np.rint(durations, out=durations).astype(np.int64)


def _list_ns(terms: list[_Term], steps: int, base: float) -> list[int]:
    if len(terms) == 1:
        start, growth, memory, compute, floor, queries, curve = terms[0]
        if curve is None and compute <= memory and (start + growth) * memory + queries >= floor:
            return [round((start + growth * step) * memory + queries + base) for step in range(1, steps + 1)]
    totals = [0.0] * steps
    for start, growth, memory, compute, floor, queries, curve in terms:
        if curve is None:
            contexts = range(start + growth, start + growth * steps + 1, growth) if growth else [start] * steps
            prices = [max(context * memory + queries, context * compute, floor) for context in contexts]
        else:
            prices = curve.along_steps(start, growth, steps)
        totals = list(map(add, totals, prices))
    return [round(attention_ns + base) for attention_ns in totals]
