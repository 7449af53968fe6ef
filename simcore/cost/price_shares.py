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
from simcore.cost.host_time import HOST
from simcore.cost.operators import ExpertMatrices, Matrix
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.cost.term import StepCounts
from simcore.cost.work import WorkCounter

MOST_OUTSIDE = 0.3
"""The share of simulated time outside calibrated ranges from which a run is warned of, and refused with --strict."""
_NOTHING = (1 << 62, -1)
"""A range of context that nothing lies in."""


class RangeCounter:
    """Counts steps whose attention was priced by calibrated kernels outside the range that these were measured in.

    One chunk or one kind of layers outside is enough; decodes beside a chunk are judged by the range of decodes alone.
    ``attention_ns`` is what attention of each source took, if prices of several sources are at work; else it names the
    one source.
    """

    __slots__ = (
        "_attention",
        "_contexts",
        "_cost",
        "_linear",
        "_ranges",
        "_several_sources",
        "_split",
        "_uniform",
        "attention_ns",
        "steps",
        "time_ns",
    )

    def __init__(self, cost: StepCost) -> None:
        self._attention = tuple(kind for kind in cost.compiled_attention if kind.calibrated.generation is not None)
        contexts = (kind.calibrated.context for kind in self._attention)
        self._contexts = tuple(context for context in contexts if context is not None)
        self._uniform = len(self._attention) == 1 and self._attention[0].window is None
        self._linear = tuple(linear for linear in cost.linear_attention if linear.measured is not None)
        self._split = cost.split
        self._cost = cost
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        sources = sorted(attention_sources(cost))
        self._several_sources = len(sources) > 1
        self.attention_ns: dict[Source, float] = dict.fromkeys(sources, 0.0 if self._several_sources else 1.0)
        self.steps: Counter[StepCounts] = Counter()
        self.time_ns = 0

    def count_decodes(self, pool: DecodePool, durations_ns: StepDurations) -> None:
        """Count those of the next decode steps of all members that lie outside."""
        size, steps = pool.size, len(durations_ns)
        if self._several_sources:
            self._add_decodes(self._cost.decode_attention.steps_by_kind_ns(pool, steps), size, steps)
        if not self._attention:
            if not self._states_inside(size):
                self.steps[self._split.counts_of_decodes(size)] += steps
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
            self.steps[self._split.counts_of_decodes(size)] += outside
            self.time_ns += sum(map(int, durations_ns[:first])) + sum(map(int, durations_ns[max(end, first) :]))

    def count_step(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int, duration_ns: int) -> None:
        """Count one step that is not decode alone, if its attention lies outside."""
        if self._several_sources:
            self._add_step(plan, pool)
        if (self._attention or self._linear) and not self._inside(plan, pool):
            self.steps[self._split.counts_of(plan, sampled_rows)] += 1
            self.time_ns += duration_ns

    def _add_step(self, plan: BatchPlan, pool: DecodePool) -> None:
        beside_decodes = plan.decoding > 0
        if plan.chunks:
            chunks = [(tokens, computed_tokens) for _, tokens, computed_tokens in plan.chunks]
            for kind in self._cost.compiled_attention:
                self.attention_ns[kind.chunks_source] += kind.chunks_ns(chunks, beside_decodes)
            for linear in self._cost.linear_attention:
                self.attention_ns[linear.source] += linear.chunks_ns(chunks)
        if beside_decodes:
            by_kind_ns = self._cost.decode_attention.step_by_kind_ns(plan, pool)
            self._add_decodes(by_kind_ns, plan.decoding, 1, beside_chunks=bool(plan.chunks))

    def _add_decodes(self, by_kind_ns: list[float], decoding: int, steps: int, beside_chunks: bool = False) -> None:
        for kind, taken_ns in zip(self._cost.compiled_attention, by_kind_ns, strict=True):
            self.attention_ns[kind.decodes_source(beside_chunks)] += taken_ns
        for linear in self._cost.linear_attention:
            self.attention_ns[linear.source] += steps * linear.decodes_ns(decoding)

    def _inside(self, plan: BatchPlan, pool: DecodePool) -> bool:
        for context in self._contexts:
            for _, tokens, computed_tokens in plan.chunks:
                if not context.inside(tokens, computed_tokens):
                    return False
        if self._linear:
            chunks = [(tokens, computed_tokens) for _, tokens, computed_tokens in plan.chunks]
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


def attention_sources(cost: StepCost) -> set[Source]:
    """Where prices of attention come from, linear attention included."""
    found = {linear.source for linear in cost.linear_attention}
    for kind in cost.compiled_attention:
        found |= {kind.chunks_source, kind.decodes_source(False), kind.decodes_source(True)}
    return found


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

    GEMMs are named by their weights' format, attention by its heads and the cache's format.
    """
    found = []
    for term in cost.token_terms:
        shape = None if term.operator is None else term.operator.shape
        if isinstance(shape, Matrix | ExpertMatrices) and term.price.source is Source.ROOFLINE:
            kernels = {"experts": "experts", "router": "routers"}.get(term.name, "GEMMs")
            found.append(f"{kernels} in {shape.weights}")
    for kind in cost.compiled_attention:
        attention, dtype = kind.work.shape, kind.work.kv_dtype
        heads = "" if attention is None else f" of head dimension {attention.head_dim}"
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
    cost: StepCost | PipelineCost, work: Iterable[WorkCounter], ranges: Iterable[RangeCounter], busy_s: float
) -> PriceShares:
    """The shares of a run whose steps took ``busy_s`` in all.

    Time of attention is what is left of the steps once all else is taken off.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    outside_s = 0.0
    priced: dict[tuple[int, int], tuple[float, bool]] = {}  # replicas alike take steps alike
    for counter in work:
        host_s = counter.host_s(cost)
        seconds[HOST] += host_s
        outside_s += host_s
        tokens_by_kind = counter.tokens_by_kind()
        for place, term in enumerate(cost.token_terms):
            source = term.price.source
            for tokens, steps in tokens_by_kind[term.tokens].items():
                price = priced.get((place, tokens))
                if price is None:
                    price = priced[place, tokens] = term.seconds(tokens), term.price.inside(tokens)
                taken_s = steps * price[0]
                seconds[source] += taken_s
                if not price[1]:
                    outside_s += taken_s
    attention_s = max(busy_s - sum(seconds.values()), 0.0)
    attention_ns: defaultdict[Source, float] = defaultdict(float)
    beyond_s = 0.0
    for found in ranges:
        for source, taken_ns in found.attention_ns.items():
            attention_ns[source] += taken_ns
        rest_ns = sum(steps * cost.without_attention_ns(counts) for counts, steps in sorted(found.steps.items()))
        beyond_s += max(found.time_ns - rest_ns, 0.0) / NS_PER_S
    whole_ns = sum(attention_ns.values()) or 1.0
    for source, taken_ns in attention_ns.items():
        seconds[source] += attention_s * (taken_ns / whole_ns)
    roofline_share = attention_ns[Source.ROOFLINE] / whole_ns
    outside_s += attention_s * roofline_share + min(beyond_s, attention_s) * (1 - roofline_share)
    total_s = sum(seconds.values())
    if not total_s:
        return PriceShares({}, 0.0)
    by_source = {str(source): seconds[source] / total_s for source in sorted(seconds) if seconds[source]}
    return PriceShares(by_source, min(outside_s / total_s, 1.0))
