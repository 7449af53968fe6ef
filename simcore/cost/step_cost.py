"""The price of a step, compiled once per scenario so that pricing costs microseconds."""

from collections.abc import Iterable

from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.core.token_gaps import StepDurations
from simcore.cost.assumptions import HostOverhead
from simcore.cost.attention import attention_work
from simcore.cost.compiled_attention import compile_attention
from simcore.cost.compiled_linear_attention import compile_linear_attention
from simcore.cost.decode_attention import DecodeAttention
from simcore.cost.exchange import deal, expert_exchange, logits_gather
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.linear_attention import PROMPT_LAUNCHES, linear_attention_work
from simcore.cost.model_operators import (
    all_reduces,
    embedding_operators,
    final_norm_operators,
    head_operators,
    layer_operators,
)
from simcore.cost.operators import Operator
from simcore.cost.ring import merge_of
from simcore.cost.split import Split, mixture_layers
from simcore.memory.kv_bytes import KvFormat
from simcore.models import ModelSpec


class StepCost:
    """Prices steps of one model on one accelerator type, ``ranks`` of them in tensor parallel.

    A step is the sum of its layers' operators (they depend on its tokens alone and are tabulated), the head over the
    sampled rows, attention, linear or not, of decodes and of prompt chunks, two all-reduces per layer, and host
    overhead. Of a pipeline stage, ``part`` are its layers; the embedding is on the first, the head on the last.
    ``split`` says what else is divided: of several data groups the fullest is priced, and instead of summing experts'
    results, tokens are sent to experts and back.
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
        self._host = host
        before = embedding_operators(spec) if embeds else ()
        after = final_norm_operators(spec) if has_head else ()
        self.layers = (*before, *layer_operators(spec, weight_dtype, ranks, split), *after)
        self.head = tuple(head_operators(spec, ranks)) if has_head else ()
        self.attention = attention_work(spec, kv_format, ranks)
        self.merge = merge_of(prices, split, self.attention)
        self.layer_prices = tuple(prices.operator(operator) for operator in self.layers)
        self.head_prices = tuple(prices.operator(operator) for operator in self.head)
        self.all_reduce_price = prices.collective("all_reduce", ranks)
        exchanges = mixture_layers(spec) if split.data > 1 else 0
        self.all_reduces = tuple(all_reduces(spec, exchanges, embeds)) if ranks > 1 else ()
        self.logits_gather = logits_gather(spec, prices, ranks) if has_head else None
        self.exchange = expert_exchange(spec, prices, split, exchanges)
        self.compiled_attention = tuple(compile_attention(work, prices, split, windows) for work in self.attention)
        self._decodes = DecodeAttention(self.compiled_attention)
        linear = linear_attention_work(spec, ranks)
        self.linear_attention = tuple(compile_linear_attention(work, prices, split.data) for work in linear)
        self._state_ns: dict[int, float] = {}
        self._linear_ns: dict[int | tuple[int, int], float] = {}
        self._head_ns: dict[int, float] = {}
        self._base_ns: dict[tuple[int, int, int, int], float] = {}
        launches = sum(operator.count * operator.launches for operator in self.layers)
        launches += sum(all_reduce.count for all_reduce in self.all_reduces) + 2 * exchanges
        launches += sum(work.count * work.launches for work in self.attention)
        if not host.compiled:
            launches += sum(work.count * work.uncompiled_launches for work in self.attention)
        launches += sum(work.count * PROMPT_LAUNCHES for work in linear)
        self.launches = launches
        scale = prices.roofline.accelerator.launch_scale * NS_PER_S
        self._eager_ns: float = launches * host.launch_s * scale
        self._linear_prompt_ns: float = sum(work.count for work in linear) * host.linear_prompt_s * scale

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
            if rows and self.logits_gather is not None:
                seconds += self.logits_gather.seconds(own_rows)
            price = self._head_ns[rows] = seconds * NS_PER_S
        return price

    def host_ns(self, tokens: int, rows: int, requests: int) -> float:
        """What the host adds to a step of so many tokens, sampled rows and requests.

        A step of one token per request is decodes alone.
        """
        return (
            self.between_steps_ns(requests)
            + self.waiting_ns(tokens, requests)
            + self.launching_ns(tokens, rows, requests)
        )

    def between_steps_ns(self, requests: int) -> float:
        """What of it passes whatever the step does: scheduling, inputs, sampling and output."""
        return (self._host.step_s + self._host.per_request_s * requests) * NS_PER_S

    def waiting_ns(self, tokens: int, requests: int) -> float:
        """What of it the accelerator waits for in layers of linear attention, whose prompts are not launched ahead."""
        return self._linear_prompt_ns if tokens != requests else 0.0

    def launching_ns(self, tokens: int, rows: int, requests: int) -> float:
        """What of it is launching the kernels of an eager step, beyond the time of those that are no attention."""
        host = self._host
        if tokens <= host.max_cudagraph_tokens and (host.mixed_graphs or tokens == requests):
            return 0.0
        return max(self._eager_ns - self.linear_ns(tokens) - self.head_ns(rows), 0.0)

    def decode_steps_ns(self, pool: DecodePool, steps: int, within_ns: int = FOREVER, more: int = 0) -> StepDurations:
        """How long each of the next decode steps takes, in nanoseconds.

        There are ``steps`` of them, or as many as it takes for one to end at or after ``within_ns`` and ``more`` after
        that, if those are fewer. Every member decodes in each of them, and nothing else runs. No step may lie beyond a
        window crossing.
        """
        size = pool.size
        base = self._without_attention_ns(size, size, size)
        if self.merge is not None:
            base += self._merge_ns(size)
        if self.linear_attention:
            base += self.linear_decodes_ns(size)
        return self._decodes.steps_ns(pool, steps, base, within_ns, more)

    def step_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> int:
        """One step that is not decode alone; ``sampled_rows`` of its tokens are sampled."""
        attention_ns = 0.0
        own_tokens = 0
        if plan.chunks:
            chunks = [(tokens, computed) for _, tokens, computed in plan.chunks]
            for attention in self.compiled_attention:
                attention_ns += attention.chunks_ns(chunks, beside_decodes=plan.decoding > 0)
            for linear in self.linear_attention:
                attention_ns += linear.chunks_ns(chunks)
            if self.split.data > 1:
                own_tokens = self.fullest_group_tokens(chunks, plan.decoding)
        if plan.decoding:
            attention_ns += self._decodes.step_ns(plan, pool) + self._merge_ns(plan.decoding)
            if self.linear_attention:
                attention_ns += self.linear_decodes_ns(plan.decoding)
        tokens = self.split.step_tokens(plan.decoding, plan.prefill_tokens)
        requests = plan.decoding + len(plan.chunks)
        return round(self._without_attention_ns(tokens, sampled_rows, requests, own_tokens) + attention_ns)

    def linear_decodes_ns(self, decoding: int) -> float:
        """Linear attention of so many decodes, which does not depend on their context."""
        price = self._state_ns.get(decoding)
        if price is None:
            price = self._state_ns[decoding] = sum(linear.decodes_ns(decoding) for linear in self.linear_attention)
        return price

    def _merge_ns(self, decoding: int) -> float:
        return 0.0 if self.merge is None else self.merge.seconds(decoding) * NS_PER_S

    def fullest_group_tokens(self, chunks: Iterable[tuple[int, int]], decoding: int) -> int:
        """Tokens of the data group that has most of them, decodes dealt out evenly."""
        if self.split.data == 1:
            return decoding + sum(tokens for tokens, _ in chunks)
        dealt = deal(chunks, self.split.data)
        return self.split.own_tokens(decoding) + max(sum(tokens for tokens, _ in own) for own in dealt)

    def _without_attention_ns(self, tokens: int, rows: int, requests: int, own_tokens: int = 0) -> float:
        shape = tokens, rows, requests, own_tokens
        price = self._base_ns.get(shape)
        if price is None:
            price = self.linear_ns(tokens, own_tokens) + self.head_ns(rows) + self.host_ns(tokens, rows, requests)
            self._base_ns[shape] = price
        return price
