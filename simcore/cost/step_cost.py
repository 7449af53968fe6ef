"""The price of a step, compiled once per scenario so that pricing costs microseconds."""

from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.core.token_gaps import StepDurations
from simcore.cost.assumptions import HostOverhead
from simcore.cost.attention import attention_work
from simcore.cost.breakdown import OperatorTime, StepShape
from simcore.cost.compiled_attention import compile_attention
from simcore.cost.compiled_linear_attention import compile_linear_attention
from simcore.cost.decode_attention import DecodeAttention
from simcore.cost.host_time import HostTime
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.linear_attention import linear_attention_work
from simcore.cost.split import Split
from simcore.cost.step_terms import step_terms
from simcore.cost.term import Counted, StepCounts
from simcore.memory.kv_bytes import KvFormat
from simcore.models import ModelSpec


class StepCost:
    """Prices steps of one model on one accelerator type, ``ranks`` of them in tensor parallel.

    ``step_ns`` and ``decode_steps_ns`` price the steps of a run, ``terms`` tells one in parts. Of a pipeline stage,
    ``part`` are its layers; the embedding is on the first, the head on the last. ``split`` says what else is divided:
    of several data-parallel ranks the fullest is priced, and instead of summing experts' results, tokens are sent to
    experts and back.
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
        everywhere = attention_work(spec, kv_format, ranks)
        windows = sorted({work.window_tokens for work in everywhere if work.window_tokens is not None})
        self.window_tokens: tuple[int, ...] = tuple(windows)
        """Windows of the whole model, and numbers of tokens chosen, whose context a decode pool must keep."""
        embeds, has_head = part is None or part.start == 0, part is None or part.stop == spec.layers
        if part is not None:
            spec = spec.stage(part)
        self.prices = prices
        attention = attention_work(spec, kv_format, ranks, prices.engine.launches)
        linear = linear_attention_work(spec, ranks)
        self.token_terms = tuple(step_terms(spec, prices, weight_dtype, attention, split, embeds, has_head))
        """What depends on numbers of tokens alone."""
        self.compiled_attention = tuple(compile_attention(work, prices, split, windows) for work in attention)
        self.linear_attention = tuple(compile_linear_attention(work, prices, split.data) for work in linear)
        self.decode_attention = DecodeAttention(self.compiled_attention)
        self._layers = tuple(term for term in self.token_terms if term.tokens in (Counted.ALL, Counted.OWN))
        self._head = tuple(term for term in self.token_terms if term.tokens is Counted.ROWS)
        self._merges = tuple(term for term in self.token_terms if term.tokens is Counted.DECODING)
        self.host = self._host_time(host, spec.layers)
        self._layers_ns: dict[tuple[int, int], float] = {}
        self._head_ns: dict[int, float] = {}
        self._states_ns: dict[int, float] = {}
        self._base_ns: dict[tuple[int, int, int, int], float] = {}
        self._decodes_base_ns: dict[int, float] = {}

    def _host_time(self, host: HostOverhead, layers: int) -> HostTime:
        launches = sum(term.launches for term in self._layers)
        for kind in self.compiled_attention:
            work = kind.work
            launches += work.count * (work.launches + (0 if host.compiled else work.uncompiled_launches))
        linear_layers = sum(kind.work.count for kind in self.linear_attention)
        launches += linear_layers * self.prices.engine.launches.linear_attention_prompt
        return HostTime(host, launches, layers, linear_layers)

    @property
    def peak_flops_per_s(self) -> float:
        """The datasheet rate of GEMMs at these dtypes, for one accelerator."""
        return self.prices.roofline.matmul_flops_per_s

    def step_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> int:
        """One step that is not decode alone; ``sampled_rows`` of its tokens are sampled."""
        attention_ns = 0.0
        if plan.chunks:
            chunks = [(tokens, computed) for _, tokens, computed in plan.chunks]
            for attention in self.compiled_attention:
                attention_ns += attention.chunks_ns(chunks, beside_decodes=plan.decoding > 0)
            for linear in self.linear_attention:
                attention_ns += linear.chunks_ns(chunks)
        if plan.decoding:
            attention_ns += self.decode_attention.step_ns(plan, pool)
            if self.linear_attention:
                attention_ns += self.linear_decodes_ns(plan.decoding)
        shape = plan.decoding, plan.prefill_tokens, len(plan.chunks), sampled_rows
        base_ns = self._base_ns.get(shape)
        if base_ns is None:
            base_ns = self.without_attention_ns(self.split.counts_of(plan, sampled_rows))
            if self.split.data == 1:  # else it also matters how chunks are dealt out
                self._base_ns[shape] = base_ns
        return round(base_ns + attention_ns)

    def decode_steps_ns(self, pool: DecodePool, steps: int, within_ns: int = FOREVER, more: int = 0) -> StepDurations:
        """How long each of the next decode steps takes, in nanoseconds.

        There are ``steps`` of them, or as many as it takes for one to end at or after ``within_ns`` and ``more`` after
        that, if those are fewer. Every member decodes in each of them, and nothing else runs. No step may lie beyond a
        window crossing.
        """
        size = pool.size
        base_ns = self._decodes_base_ns.get(size)
        if base_ns is None:
            base_ns = self.without_attention_ns(self.split.counts_of_decodes(size))
            if self.linear_attention:
                base_ns += self.linear_decodes_ns(size)
            self._decodes_base_ns[size] = base_ns
        return self.decode_attention.steps_ns(pool, steps, base_ns, within_ns, more)

    def terms(self, shape: StepShape) -> list[OperatorTime]:
        """A step told in parts, the host's last; their seconds add up to its price."""
        counts = self.counts_in(shape)
        times = [OperatorTime.of(term, tokens) for term in self.token_terms if (tokens := counts[term.tokens])]
        for attention in self.compiled_attention:
            times += attention.times(shape)
        for linear in self.linear_attention:
            times += linear.times(shape)
        return [*times, *self.host.times(counts.tokens, counts.requests, self._kernels_ns(counts))]

    def counts_in(self, shape: StepShape) -> StepCounts:
        """The counts of a shape, whose every request samples a token."""
        return self.split.counts(shape.decodes, shape.chunks, shape.requests)

    def without_attention_ns(self, counts: StepCounts) -> float:
        """A step but for its attention."""
        merges_ns = sum(term.seconds(counts.decoding) for term in self._merges) * NS_PER_S
        return self._kernels_ns(counts) + self.host_ns(counts) + merges_ns

    def host_ns(self, counts: StepCounts) -> float:
        """What the host adds to a step."""
        tokens, requests = counts.tokens, counts.requests
        return (
            self.host.between_steps_ns(requests)
            + self.host.waiting_ns(tokens, requests)
            + self.host.launching_ns(tokens, requests, self._kernels_ns(counts))
        )

    def linear_decodes_ns(self, decoding: int) -> float:
        """Linear attention of so many decodes, which does not depend on their context."""
        price_ns = self._states_ns.get(decoding)
        if price_ns is None:
            price_ns = self._states_ns[decoding] = sum(linear.decodes_ns(decoding) for linear in self.linear_attention)
        return price_ns

    def _kernels_ns(self, counts: StepCounts) -> float:
        """Layers and head, messages between ranks included."""
        own = counts[:2]
        layers_ns = self._layers_ns.get(own)
        if layers_ns is None:
            seconds = sum(term.seconds(counts[term.tokens]) for term in self._layers)
            layers_ns = self._layers_ns[own] = seconds * NS_PER_S
        head_ns = self._head_ns.get(counts.rows)
        if head_ns is None:
            seconds = sum(term.seconds(counts.rows) for term in self._head)
            head_ns = self._head_ns[counts.rows] = seconds * NS_PER_S
        return layers_ns + head_ns
