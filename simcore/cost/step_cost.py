"""The price of a step, compiled once per scenario so that pricing costs microseconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray

from policies.horizon import FOREVER
from simcore.clock import NS_PER_S
from simcore.cost.assumptions import HostOverhead
from simcore.cost.calibrated import Curve, GenerationPrice
from simcore.cost.exchange import deal, expert_exchange
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.operators import (
    AttentionWork,
    Operator,
    all_reduces,
    attention_work,
    head_operators,
    layer_operators,
)
from simcore.cost.prices import AttentionPrices
from simcore.cost.ring import Ring, merge_of, ring_of
from simcore.cost.roofline import attended_pairs, read_context
from simcore.cost.split import Split, mixture_layers
from simcore.memory.kv_bytes import KvFormat, attention_counts
from simcore.metrics.token_gaps import StepDurations
from simcore.models import ModelSpec
from simcore.scheduling.decode_pool import DecodePool
from simcore.scheduling.plan import BatchPlan

_SCALAR_STEPS = 24
"""Up to so many steps are priced one by one, which is quicker than an array."""
_WALKED = 8
"""And so many times as many where that is a walk along one curve."""


@dataclass(frozen=True, slots=True)
class CompiledAttention:
    """Attention of the layers alike, all of them together, in nanoseconds.

    It takes the longest of reading the context, computing with it, and a floor. ``prices`` are the time to read a
    context token, the time to compute with one in a decode, the floor, and the time to read that each query adds; a
    pair of query and context token in a prefill takes ``prefill_pair_ns`` to compute. ``window`` is which of the pool's
    windows it reads, None for the whole context. What ``calibrated`` prices is priced by that instead, ``scale`` times.
    Requests are dealt out to ``groups`` of ranks: ``prices`` are those of one group over tokens of all. Where there is
    a ``ring``, each of its ranks has a part of every context.
    """

    work: AttentionWork
    window: int | None
    prices: tuple[float, float, float, float]
    prefill_pair_ns: float
    calibrated: AttentionPrices
    scale: float
    groups: int = 1
    ring: Ring | None = None

    def chunks_ns(self, chunks: Iterable[tuple[int, int]], beside_decodes: bool) -> float:
        """Chunks of (tokens, tokens computed before); beside decodes measured with a chunk, less a chunk's floor."""
        if self.groups > 1:
            dealt = deal(chunks, self.groups)
            return max(self._own_chunks_ns(own, beside_decodes) for own in dealt)
        if self.ring is not None:
            chunks = list(chunks)
            work = self.work
            part_bytes = self.ring.part_bytes(chunks, work.window_tokens, work.kv_bytes_per_token)
            return self.ring.rounds_ns(self._own_chunks_ns(chunks, beside_decodes), part_bytes)
        return self._own_chunks_ns(chunks, beside_decodes)

    @property
    def parts(self) -> int:
        """Into how many parts the context of all requests is divided."""
        return self.groups if self.ring is None else self.ring.ranks

    def _own_chunks_ns(self, chunks: Iterable[tuple[int, int]], beside_decodes: bool) -> float:
        calibrated = self.calibrated
        if calibrated.context is not None:
            seconds = calibrated.context.step_s(list(chunks))
            if beside_decodes and calibrated.mixed is not None:
                seconds = max(seconds - calibrated.context.curves[0].at(0), 0.0)
            return self.scale * seconds
        total = 0.0
        window_tokens = self.work.window_tokens
        memory, _, floor, query = self.prices
        for tokens, computed_tokens in chunks:
            pairs = attended_pairs(computed_tokens, tokens, window_tokens)
            context = read_context(computed_tokens, tokens, window_tokens)
            moved_ns = context * memory * self.parts + tokens * query * self.groups
            total += max(pairs * self.prefill_pair_ns, moved_ns, floor)
        return total

    def decodes_ns(self, decoding: int, context: int, beside_chunks: bool) -> float:
        """``decoding`` requests that read ``context`` tokens together, new ones included."""
        curve = self.decode_curve(decoding, beside_chunks)
        if curve is not None:
            return curve.at(context)
        memory, compute, floor, per_query = self.prices
        return max(context * memory + decoding * per_query, context * compute, floor)

    def decode_curve(self, decoding: int, beside_chunks: bool) -> Curve | None:
        """Attention of so many requests over their context in total; None where the roofline must do."""
        price = self.decode_price(beside_chunks)
        return None if price is None else price.over_total_context(decoding).curve.scaled(self.scale)

    def decode_price(self, beside_chunks: bool) -> GenerationPrice | None:
        """The calibrated price of decodes, alone or beside chunks; None where the roofline must do."""
        calibrated = self.calibrated
        return (calibrated.mixed if beside_chunks else None) or calibrated.generation


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


class StepCost:
    """Prices steps of one model on one accelerator type, ``ranks`` of them in tensor parallel.

    A step is the sum of its layers' operators (they depend on its tokens alone and are tabulated), the head over the
    sampled rows, attention of decodes and of prompt chunks, two all-reduces per layer, and host overhead. Of a pipeline
    stage, ``part`` are its layers; the head is on the last. ``split`` says what else is divided: of several data groups
    the fullest is priced, and instead of summing experts' results, tokens are sent to experts and back.
    """

    def __init__(
        self,
        spec: ModelSpec,
        prices: KernelPrices,
        host: HostOverhead,
        weight_dtype: str,
        kv_format: KvFormat,
        ranks: int,
        part: range | None = None,
        split: Split | None = None,
    ) -> None:
        self.split = split = split or Split(tensor=ranks)
        windows = sorted({kind.window_tokens for kind in attention_counts(spec) if kind.window_tokens is not None})
        self.window_tokens: tuple[int, ...] = tuple(windows)
        """The sliding windows of the whole model, whose context a decode pool must keep."""
        has_head = part is None or part.stop == spec.layers
        if part is not None:
            spec = spec.stage(part)
        self.prices = prices
        self._host = host
        self.layers = tuple(layer_operators(spec, weight_dtype, ranks, split))
        self.head = tuple(head_operators(spec, ranks)) if has_head else ()
        self.attention = attention_work(spec, kv_format, ranks)
        self.merge = merge_of(prices, split, self.attention)
        self.layer_prices = tuple(prices.operator(operator) for operator in self.layers)
        self.head_prices = tuple(prices.operator(operator) for operator in self.head)
        self.all_reduce_price = prices.collective("all_reduce", ranks)
        exchanges = mixture_layers(spec) if split.data > 1 else 0
        self.all_reduces = tuple(all_reduces(spec, exchanges)) if ranks > 1 else ()
        self.exchange = expert_exchange(spec, prices, split, exchanges)
        self.compiled_attention = tuple(self._compile(work) for work in self.attention)
        self._linear_ns: dict[int | tuple[int, int], float] = {}
        self._head_ns: dict[int, float] = {}
        self._base_ns: dict[tuple[int, int, int, int], float] = {}
        launches = sum(operator.count * operator.launches for operator in self.layers)
        launches += sum(all_reduce.count for all_reduce in self.all_reduces) + 2 * exchanges
        launches += sum(work.count * work.launches for work in self.attention)
        if not host.compiled:
            launches += sum(work.count * work.uncompiled_launches for work in self.attention)
        self._eager_ns = launches * host.launch_s * prices.roofline.accelerator.launch_scale * NS_PER_S
        self._alone: dict[int, _DecodeCurves] = {}
        self._beside: dict[int, _DecodeCurves] = {}
        self._steps = np.arange(1, 4097, dtype=np.float64)

    @property
    def peak_flops_per_s(self) -> float:
        """The datasheet rate of matrix products at these dtypes, for one accelerator."""
        return self.prices.roofline.matmul_flops_per_s

    def seen_tokens(self, operator: Operator, tokens: int, own_tokens: int = 0) -> int:
        """Of the tokens of a step, those that a rank's kernel sees: all where it has experts, else its group's own.

        They are ``own_tokens`` where these are more than an even share.
        """
        return tokens if operator.experts > 1 else max(self.split.own_tokens(tokens), own_tokens)

    def linear_ns(self, tokens: int, own_tokens: int = 0) -> float:
        """Everything of a step that depends on its token count alone, collectives included.

        The fullest data group has ``own_tokens`` of the tokens, if that is more than an even share.
        """
        key = (tokens, own_tokens) if own_tokens else tokens
        price = self._linear_ns.get(key)
        if price is None:
            own_tokens = max(self.split.own_tokens(tokens), own_tokens)
            priced = zip(self.layers, self.layer_prices, strict=True)
            seconds = sum(
                operator.count * price.seconds(self.seen_tokens(operator, tokens, own_tokens))
                for operator, price in priced
            )
            for all_reduce in self.all_reduces:
                seconds += all_reduce.count * self.all_reduce_price.seconds(own_tokens * all_reduce.bytes_per_token)
            if self.exchange is not None:
                seconds += self.exchange.seconds(own_tokens)
            price = self._linear_ns[key] = seconds * NS_PER_S
        return price

    def head_ns(self, rows: int) -> float:
        """The output head over ``rows`` sampled tokens; nothing is launched for none."""
        price = self._head_ns.get(rows)
        if price is None:
            priced = zip(self.head, self.head_prices, strict=True)
            own_rows = self.split.own_tokens(rows)
            seconds = sum(operator.count * price.seconds(own_rows) for operator, price in priced) if rows else 0.0
            price = self._head_ns[rows] = seconds * NS_PER_S
        return price

    def host_ns(self, tokens: int, rows: int, requests: int) -> float:
        """What the host adds to a step of so many tokens, sampled rows and requests.

        Kernels but for attention hide the launches of an eager step; a step of one token per request is decodes alone.
        """
        host = self._host
        price = (host.step_s + host.per_request_s * requests) * NS_PER_S
        if tokens > host.graph_tokens or not (host.mixed_graphs or tokens == requests):
            price += max(self._eager_ns - self.linear_ns(tokens) - self.head_ns(rows), 0.0)
        return price

    def decode_steps_ns(self, pool: DecodePool, steps: int, within_ns: int = FOREVER, more: int = 0) -> StepDurations:
        """How long each of the next decode steps takes, in nanoseconds.

        There are ``steps`` of them, or as many as it takes for one to end at or after ``within_ns`` and ``more`` after
        that, if those are fewer. Every member decodes in each of them, and nothing else runs. No step may lie beyond a
        window crossing.
        """
        size, context = pool.size, pool.context_tokens
        base = self._without_attention_ns(size, size, size)
        if self.merge is not None:
            base += self._merge_ns(size)
        curves = self._alone.get(size) or self._curves(self._alone, size)
        curve = curves.only
        if curve is not None:
            first = round(curve.at(context + size) + base)
        elif curves.windowed:
            first = round(curves.next_step_ns(pool) + base)
        else:
            first = self._decode_list_ns(self._decode_terms(pool, size, curves), 1, base)[0]
        steps = min(steps, within_ns // first + 1 + more)  # no later step is shorter than the first
        if steps == 1:
            return [first]
        if steps > (_SCALAR_STEPS if curve is None else _WALKED * _SCALAR_STEPS):
            array = self._decode_array_ns(self._decode_terms(pool, size, curves), steps, base)
            return array if within_ns == FOREVER else array[: array.cumsum().searchsorted(within_ns) + 1 + more]
        if curve is None:
            durations = self._decode_list_ns(self._decode_terms(pool, size, curves), steps, base)
        else:
            durations = [round(price + base) for price in curve.along_steps(context, size, steps)]
        enough = len(durations) - more
        excess = sum(durations[:enough]) - within_ns
        while enough > 1 and excess >= durations[enough - 1]:
            enough -= 1
            excess -= durations[enough]
        return durations[: enough + more]

    def _curves(self, cache: dict[int, _DecodeCurves], decoding: int) -> _DecodeCurves:
        beside_chunks = cache is self._beside
        by_kind = tuple(kind.decode_curve(decoding, beside_chunks) for kind in self.compiled_attention)
        only = by_kind[0] if len(by_kind) == 1 and not self.window_tokens else None
        kinds = zip(by_kind, self.compiled_attention, strict=True)
        windowed = tuple((curve, kind.window) for curve, kind in kinds if curve is not None)
        if len(windowed) < len(by_kind):
            windowed = ()
        curves = cache[decoding] = _DecodeCurves(by_kind, windowed, only)
        return curves

    def _decode_terms(self, pool: DecodePool, decoding: int, curves: _DecodeCurves) -> list[_Term]:
        """The attention of a step in which ``decoding`` members of the pool decode."""
        terms = []
        for attention, curve in zip(self.compiled_attention, curves.by_kind, strict=True):
            memory, compute, floor, per_query = attention.prices
            if attention.window is None:
                start, growth = pool.context_tokens, pool.size
            else:
                window = pool.windows[attention.window]
                start, growth = window.tokens, window.growing
            terms.append((start, growth, memory, compute, floor, decoding * per_query, curve))
        return terms

    def _decode_list_ns(self, terms: list[_Term], steps: int, base: float) -> list[int]:
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

    def _decode_array_ns(self, terms: list[_Term], steps: int, base: float) -> NDArray[np.int64]:
        """The same prices for many steps, by the same arithmetic in the same order, so equal to the bit."""
        while steps > len(self._steps):
            self._steps = np.arange(1, 2 * len(self._steps) + 1, dtype=np.float64)
        count = self._steps[:steps]
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

    def step_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> int:
        """One step that is not decode alone; ``sampled_rows`` of its tokens are sampled."""
        attention_ns = 0.0
        own_tokens = 0
        if plan.chunks:
            chunks = [(tokens, computed) for _, tokens, computed in plan.chunks]
            for attention in self.compiled_attention:
                attention_ns += attention.chunks_ns(chunks, beside_decodes=plan.decoding > 0)
            if self.split.data > 1:
                own_tokens = self.fullest_group_tokens(chunks, plan.decoding)
        if plan.decoding:
            attention_ns += self._decode_attention_ns(plan, pool) + self._merge_ns(plan.decoding)
        tokens = self.split.step_tokens(plan.decoding, plan.prefill_tokens)
        requests = plan.decoding + len(plan.chunks)
        return round(self._without_attention_ns(tokens, sampled_rows, requests, own_tokens) + attention_ns)

    def _merge_ns(self, decoding: int) -> float:
        return 0.0 if self.merge is None else self.merge.seconds(decoding) * NS_PER_S

    def fullest_group_tokens(self, chunks: Iterable[tuple[int, int]], decoding: int) -> int:
        """Tokens of the data group that has most of them, decodes dealt out evenly."""
        dealt = deal(chunks, self.split.data)
        return self.split.own_tokens(decoding) + max(sum(tokens for tokens, _ in own) for own in dealt)

    def _without_attention_ns(self, tokens: int, rows: int, requests: int, own_tokens: int = 0) -> float:
        shape = tokens, rows, requests, own_tokens
        price = self._base_ns.get(shape)
        if price is None:
            price = self.linear_ns(tokens, own_tokens) + self.head_ns(rows) + self.host_ns(tokens, rows, requests)
            self._base_ns[shape] = price
        return price

    def _decode_attention_ns(self, plan: BatchPlan, pool: DecodePool) -> float:
        """Attention of the next decode step of all members that are not stalled."""
        cache = self._beside if plan.chunks else self._alone
        curves = cache.get(plan.decoding) or self._curves(cache, plan.decoding)
        if curves.only is not None and not plan.stalled:
            return curves.only.at(pool.context_tokens + pool.size)
        if curves.windowed and not plan.stalled:
            return curves.next_step_ns(pool)
        total = 0.0
        stalled = [pool.context_of(request.origin) for request in plan.stalled]
        terms = self._decode_terms(pool, plan.decoding, curves)
        for attention, term in zip(self.compiled_attention, terms, strict=True):
            start, growth, memory, compute, floor, queries, curve = term
            context = start + growth
            for tokens in stalled:
                context -= attended_tokens(tokens, attention.work.window_tokens)
            if curve is None:
                total += max(context * memory + queries, context * compute, floor)
            else:
                total += curve.at(context)
        return total

    def _compile(self, work: AttentionWork) -> "CompiledAttention":
        roofline = self.prices.roofline
        scale, groups, spread = work.count * NS_PER_S, self.split.data, self.split.context
        window = None if work.window_tokens is None else self.window_tokens.index(work.window_tokens)
        return CompiledAttention(
            work,
            window,
            prices=(
                scale * roofline.attention_memory_s(work.kv_bytes_per_token) / (groups * spread),
                scale * roofline.attention_compute_s(work.decode_flops_per_pair) / (groups * spread),
                scale * roofline.efficiency.kernel_floor_s,
                scale * roofline.attention_memory_s(work.query_bytes_per_token) / groups,
            ),
            prefill_pair_ns=scale * roofline.attention_compute_s(work.flops_per_pair),
            calibrated=self.prices.attention(work).over_ranks(groups, spread),
            scale=scale,
            groups=groups,
            ring=ring_of(self.prices, spread, self.split.devices, work.count),
        )


def attended_tokens(context_tokens: int, window_tokens: int | None) -> int:
    """Tokens that the next decode step of a request reads."""
    read = context_tokens + 1
    return read if window_tokens is None else min(read, window_tokens)
