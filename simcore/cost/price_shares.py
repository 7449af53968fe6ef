"""Where the time of a run was priced from, and how much of it outside of what was measured."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor

from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.core.token_gaps import StepDurations
from simcore.cost.calibrated import Source
from simcore.cost.compiled_attention import CompiledAttention
from simcore.cost.prices import Price
from simcore.cost.step_cost import StepCost
from simcore.cost.work import Shape, WorkCounter

MOST_OUTSIDE = 0.3
"""The share of simulated time outside calibrated ranges from which a run is warned of, and refused with --strict."""
_NOTHING = (1 << 62, -1)
"""A range of context that nothing lies in."""
HOST = "host"
"""The share of time that the host takes, by constants that are assumed."""


class RangeCounter:
    """Counts steps whose attention was priced by calibrated kernels outside the range that these were measured in.

    One chunk or one kind of layers outside is enough; decodes beside a chunk are judged by the range of decodes alone.
    Whole numbers, so that order is no matter.
    """

    __slots__ = ("_attention", "_contexts", "_linear", "_ranges", "_split", "_uniform", "steps", "time_ns")

    def __init__(self, cost: StepCost) -> None:
        self._attention = tuple(kind for kind in cost.compiled_attention if kind.calibrated.generation is not None)
        contexts = (kind.calibrated.context for kind in self._attention)
        self._contexts = tuple(context for context in contexts if context is not None)
        self._uniform = len(self._attention) == 1 and self._attention[0].window is None
        self._linear = tuple(linear for linear in cost.linear_attention if linear.measured is not None)
        self._split = cost.split
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        self.steps: Counter[Shape] = Counter()
        self.time_ns = 0

    def count_decodes(self, pool: DecodePool, durations_ns: StepDurations) -> None:
        """Count those of the next decode steps of all members that lie outside."""
        size, steps = pool.size, len(durations_ns)
        if not self._attention:
            if not self._states_inside(size):
                self.steps[size, size, size] += steps
                self.time_ns += sum(map(int, durations_ns))
            return
        ranges = self._ranges.get(size) or self._ranges_of(size)
        if self._uniform:  # what follows, for most models and nearly all steps
            context_tokens = pool.context_tokens
            least, most = ranges[0]
            if least <= context_tokens + size and context_tokens + size * steps <= most:
                return
        first, end = 0, steps  # the steps from first to end are inside in all kinds of layers
        for kind, (least, most) in zip(self._attention, ranges, strict=True):
            start, growth = _context(kind, pool)
            if least <= start + growth and start + growth * steps <= most:
                continue
            first = max(first, _steps_until(least, start, growth, steps))
            end = min(end, _steps_within(most, start, growth, steps))
        if first or end < steps:
            outside = steps - max(end - first, 0)
            self.steps[size, size, size] += outside
            self.time_ns += sum(map(int, durations_ns[:first])) + sum(map(int, durations_ns[max(end, first) :]))

    def count_step(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int, duration_ns: int) -> None:
        """Count one step that is not decode alone, if its attention lies outside."""
        if (self._attention or self._linear) and not self._inside(plan, pool):
            tokens = self._split.step_tokens(plan.decoding, plan.prefill_tokens)
            requests = plan.decoding + len(plan.chunks)
            self.steps[tokens, sampled_rows, requests] += 1
            self.time_ns += duration_ns

    def _inside(self, plan: BatchPlan, pool: DecodePool) -> bool:
        for context in self._contexts:
            for _, tokens, computed_tokens in plan.chunks:
                if not context.inside(tokens, computed_tokens):
                    return False
        chunks = [(tokens, computed_tokens) for _, tokens, computed_tokens in plan.chunks] if self._linear else ()
        if not all(linear.inside(chunks) for linear in self._linear):
            return False
        if plan.decoding:
            if not self._attention:
                return self._states_inside(plan.decoding)
            ranges = self._ranges.get(plan.decoding) or self._ranges_of(plan.decoding)
            if self._uniform and not plan.stalled:
                least, most = ranges[0]
                return least <= pool.context_tokens + pool.size <= most
            # Of stalled requests the mean context is taken, as if they were like the others.
            for kind, (least, most) in zip(self._attention, ranges, strict=True):
                start, growth = _context(kind, pool)
                if not least <= (start + growth) * plan.decoding / pool.size <= most:
                    return False
        return True

    def _ranges_of(self, decoding: int) -> list[tuple[int, int]]:
        """The least and most context in total that were measured, for each kind of layers."""
        ranges = self._ranges[decoding] = []
        for kind in self._attention:
            assert kind.calibrated.generation is not None
            price = kind.calibrated.generation.over_total_context(decoding)
            inside = (ceil(price.curve.first), floor(price.curve.last))
            ranges.append(inside if price.shape_inside and self._states_inside(decoding) else _NOTHING)
        return ranges

    def _states_inside(self, decoding: int) -> bool:
        """Whether linear attention of so many decodes was measured, where any was."""
        return all(linear.inside_decodes(decoding) for linear in self._linear)


def _context(kind: CompiledAttention, pool: DecodePool) -> tuple[int, int]:
    if kind.window is None:
        return pool.context_tokens, pool.size
    window = pool.windows[kind.window]
    return window.tokens, window.growing


def _steps_until(least: int, start: int, growth: int, steps: int) -> int:
    """How many of the steps come before the context has grown to ``least``."""
    if not growth:
        return 0 if start >= least else steps
    return min(max(-(-(least - start) // growth) - 1, 0), steps)


def _steps_within(most: int, start: int, growth: int, steps: int) -> int:
    """How many of the steps come before the context has grown beyond ``most``."""
    if not growth:
        return steps if start <= most else 0
    return min(max((most - start) // growth, 0), steps)


@dataclass(frozen=True, slots=True)
class PriceShares:
    """Shares of simulated time: ``by_source``, with the host's, and ``outside`` of what was measured.

    Outside is all that roofline and host constants priced, and what calibrated kernels priced beyond their range.
    """

    by_source: dict[str, float]
    outside: float


def unmeasured(cost: StepCost) -> list[str]:
    """Kernels that the profile at hand has no measurements of though others do.

    Products are named by their weights' format, attention by its heads and the cache's format.
    """
    found = []
    operators = zip((*cost.layers, *cost.head), (*cost.layer_prices, *cost.head_prices), strict=True)
    for operator, price in operators:
        if operator.shape is not None and price.source is Source.ROOFLINE:
            products = {"experts": "experts", "router": "routers"}.get(operator.name, "matrix products")
            found.append(f"{products} in {operator.shape.weights}")
    for kind in cost.compiled_attention:
        shape, dtype = kind.work.shape, kind.work.kv_dtype
        heads = "" if shape is None else f" of head dimension {shape.head_dim}"
        if kind.calibrated.context is None:
            found.append(f"prompt attention{heads} with {dtype} KV")
        if kind.calibrated.generation is None:
            found.append(f"decode attention{heads} with {dtype} KV")
    for linear in cost.linear_attention:
        if linear.measured is None:
            heads = f"{linear.work.key_heads} key and {linear.work.value_heads} value heads"
            found.append(f"linear attention of {heads}")
    return list(dict.fromkeys(found))


def price_shares(
    cost: StepCost, work: Iterable[WorkCounter], ranges: Iterable[RangeCounter], busy_s: float
) -> PriceShares:
    """The shares of a run whose steps took ``busy_s`` in all.

    Time of attention is what is left of the steps once all else is taken off; among kinds of layers, and between
    prompts and decodes, it is split as roofline times are, which is no matter where they have one source.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    outside_s = 0.0
    attention_weights: defaultdict[str, float] = defaultdict(float)
    for counter in work:
        for shape, steps in counter.shapes():
            outside_s += steps * _add_linear(cost, shape, steps, seconds)
        _weigh_attention(cost, counter, attention_weights)
    attention_s = max(busy_s - sum(seconds.values()), 0.0)
    weights = sum(attention_weights.values()) or 1.0
    for source, weight in attention_weights.items():
        seconds[source] += attention_s * weight / weights
    roofline_share = attention_weights[Source.ROOFLINE] / weights
    beyond_s = 0.0
    for found in ranges:
        rest_s = sum(steps * _linear_s(cost, shape) for shape, steps in sorted(found.steps.items()))
        beyond_s += max(found.time_ns / NS_PER_S - rest_s, 0.0)
    outside_s += attention_s * roofline_share + min(beyond_s, attention_s) * (1 - roofline_share)
    total = sum(seconds.values())
    if not total:
        return PriceShares({}, 0.0)
    by_source = {str(source): seconds[source] / total for source in sorted(seconds) if seconds[source]}
    return PriceShares(by_source, min(outside_s / total, 1.0))


def _linear_s(cost: StepCost, shape: Shape) -> float:
    tokens, rows, _ = shape
    return (cost.linear_ns(tokens) + cost.head_ns(rows) + cost.host_ns(*shape)) / NS_PER_S


def _add_linear(cost: StepCost, shape: Shape, steps: int, seconds: defaultdict[str, float]) -> float:
    """Add all but attention of ``steps`` steps to ``seconds`` by source; what of one step lies outside is returned."""
    tokens, rows, _ = shape
    host_s = cost.host_ns(*shape) / NS_PER_S
    seconds[HOST] += steps * host_s
    outside_s = host_s
    kernels: list[tuple[Price, int, int]] = [
        (price, operator.count, cost.seen_tokens(operator, tokens))
        for operator, price in zip(cost.layers, cost.layer_prices, strict=True)
    ]
    own_tokens, own_rows = cost.split.own_tokens(tokens), cost.split.own_tokens(rows)
    if rows:
        kernels += [
            (price, operator.count, own_rows) for operator, price in zip(cost.head, cost.head_prices, strict=True)
        ]
        if cost.logits_gather is not None:
            kernels.append((cost.logits_gather.price, 1, cost.logits_gather.gathered_bytes(own_rows)))
    for all_reduce in cost.all_reduces:
        kernels.append((cost.all_reduce_price, all_reduce.count, own_tokens * all_reduce.bytes_per_token))
    if cost.exchange is not None:
        for sent in (cost.exchange.dispatched_bytes(own_tokens), cost.exchange.combined_bytes(own_tokens)):
            kernels.append((cost.exchange.price, cost.exchange.count, sent))
    for price, count, x in kernels:
        taken_s = count * price.seconds(x)
        seconds[price.source] += steps * taken_s
        if not price.inside(x):
            outside_s += taken_s
    return outside_s


def _weigh_attention(cost: StepCost, counter: WorkCounter, weights: defaultdict[str, float]) -> None:
    """Add the roofline times of a replica's attention to ``weights`` by the source of its prices."""
    for kind in cost.compiled_attention:
        decode_tokens, prefill_pairs = counter.attended(kind.work.window_tokens)
        memory_ns, compute_ns, _, _ = kind.prices
        generation, context = kind.calibrated.generation, kind.calibrated.context
        decode_ns = decode_tokens * max(memory_ns, compute_ns)
        weights[Source.ROOFLINE if generation is None else generation.source] += decode_ns
        weights[Source.ROOFLINE if context is None else context.source] += prefill_pairs * kind.prefill_pair_ns
    for linear in cost.linear_attention:
        work, roofline = linear.work, cost.prices.roofline
        moved = work.bytes(counter.decode_tokens, counter.decode_tokens)
        seconds = roofline.attention_memory_s(moved) + roofline.attention_compute_s(work.flops(counter.prefill_tokens))
        weights[linear.source] += work.count * seconds * NS_PER_S / linear.groups
