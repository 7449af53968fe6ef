"""The price of a step, compiled once per scenario so that pricing costs microseconds."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simcore.clock import NS_PER_S
from simcore.cost.assumptions import HostOverhead
from simcore.cost.operators import (
    ACTIVATION_BYTES,
    AttentionWork,
    Operator,
    attention_work,
    head_operators,
    layer_operators,
)
from simcore.cost.roofline import Roofline, attended_pairs
from simcore.metrics.token_gaps import StepEnds
from simcore.models import ModelSpec
from simcore.scheduling.decode_pool import DecodePool
from simcore.scheduling.plan import BatchPlan

_SCALAR_STEPS = 4
"""Up to so many steps are priced one by one, which is quicker than an array."""


@dataclass(frozen=True, slots=True)
class _DecodeAttention:
    """Decode attention of one group of layers: the longer of two straight lines in the context tokens read."""

    work: AttentionWork
    window: int | None
    """Which of the pool's windows it reads, None for the whole context."""
    compute_ns_per_pair: float
    memory_ns_per_context_token: float
    memory_ns_per_query: float
    floor_ns: float


class Work(NamedTuple):
    """Floating-point operations and bytes that steps need on one rank, whole numbers so that sums are exact."""

    flops: int
    moved_bytes: int


class StepCost:
    """Prices steps of one model on one accelerator type, ``ranks`` of them in tensor parallel.

    A step is the sum of its layers' operators (they depend on its tokens alone and are tabulated), the head over the
    sampled rows, attention of decodes and of prompt chunks, two all-reduces per layer, and host overhead.
    """

    def __init__(
        self,
        spec: ModelSpec,
        roofline: Roofline,
        host: HostOverhead,
        weight_dtype: str,
        kv_dtype: str,
        ranks: int,
    ) -> None:
        self._roofline = roofline
        self._host = host
        self._ranks = ranks
        self._layers = tuple(layer_operators(spec, weight_dtype, ranks))
        self._head = tuple(head_operators(spec, ranks))
        self._attention = attention_work(spec, kv_dtype, ranks)
        self._all_reduces = 2 * spec.layers
        self._hidden_bytes = spec.hidden_size * ACTIVATION_BYTES
        windows = sorted({work.window_tokens for work in self._attention if work.window_tokens is not None})
        self.window_tokens: tuple[int, ...] = tuple(windows)
        """The sliding windows whose context a decode pool must keep."""
        self._decode_attention = tuple(self._compile(work) for work in self._attention)
        self._linear_work: dict[int, Work] = {}
        self._head_work: dict[int, Work] = {}
        self._linear_ns: dict[int, float] = {}
        self._head_ns: dict[int, float] = {}
        self._host_ns: dict[int, float] = {}
        self._decode_base_ns: dict[int, float] = {}
        self._steps = np.arange(1, 4097, dtype=np.float64)

    @property
    def peak_flops_per_s(self) -> float:
        """The datasheet rate of matrix products at these dtypes, for one accelerator."""
        return self._roofline.matmul_flops_per_s

    def linear_ns(self, tokens: int) -> float:
        """Everything of a step that depends on its token count alone, all-reduces included."""
        price = self._linear_ns.get(tokens)
        if price is None:
            seconds = sum(op.count * self._roofline.operator_s(op, tokens) for op in self._layers)
            seconds += self._all_reduces * self._roofline.all_reduce_s(tokens * self._hidden_bytes, self._ranks)
            price = self._linear_ns[tokens] = seconds * NS_PER_S
        return price

    def head_ns(self, rows: int) -> float:
        """The output head over ``rows`` sampled tokens."""
        price = self._head_ns.get(rows)
        if price is None:
            seconds = sum(op.count * self._roofline.operator_s(op, rows) for op in self._head)
            price = self._head_ns[rows] = seconds * NS_PER_S
        return price

    def host_ns(self, requests: int) -> float:
        """What the host adds to a step of so many requests."""
        price = self._host_ns.get(requests)
        if price is None:
            seconds = self._host.step_s + self._host.per_request_s * requests
            price = self._host_ns[requests] = seconds * NS_PER_S
        return price

    def decode_steps_ns(self, pool: DecodePool, steps: int) -> StepEnds:
        """When each of the next ``steps`` decode steps ends, in nanoseconds from their start.

        Every member decodes in each of them, and nothing else runs. No step may lie beyond a window crossing.
        """
        size = pool.size
        base = self._decode_base_ns.get(size)
        if base is None:
            base = self._decode_base_ns[size] = self.linear_ns(size) + self.head_ns(size) + self.host_ns(size)
        if steps <= _SCALAR_STEPS:
            ends, end = [], 0
            for step in range(1, steps + 1):
                end += round(base + self._decode_attention_ns(pool, step))
                ends.append(end)
            return ends
        while steps > len(self._steps):
            self._steps = np.arange(1, 2 * len(self._steps) + 1, dtype=np.float64)
        count = self._steps[:steps]
        durations: NDArray[np.float64] | None = None
        for attention in self._decode_attention:
            start, growth = _context(attention, pool)
            context = count * growth
            context += start
            memory = context * attention.memory_ns_per_context_token
            memory += size * attention.memory_ns_per_query
            if attention.compute_ns_per_pair > attention.memory_ns_per_context_token:
                np.maximum(memory, context * attention.compute_ns_per_pair, out=memory)
            if memory[0] < attention.floor_ns:
                np.maximum(memory, attention.floor_ns, out=memory)
            durations = memory if durations is None else durations.__iadd__(memory)
        assert durations is not None
        durations += base
        np.rint(durations, out=durations)
        return durations.cumsum().astype(np.int64)

    def step_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> int:
        """One step that is not decode alone; ``sampled_rows`` of its tokens are sampled."""
        attention_ns = 0.0
        for _, tokens, computed_tokens in plan.chunks:
            for work in self._attention:
                seconds = self._roofline.prefill_attention_s(work, computed_tokens, tokens)
                attention_ns += work.count * seconds * NS_PER_S
        if plan.decoding:
            stalled = [pool.context_of(request.origin) for request in plan.stalled]
            attention_ns += self._decode_attention_ns(pool, 1, stalled)
        tokens = plan.decoding + plan.prefill_tokens
        requests = plan.decoding + len(plan.chunks)
        return round(self.linear_ns(tokens) + self.head_ns(sampled_rows) + self.host_ns(requests) + attention_ns)

    def decode_work(self, pool: DecodePool, steps: int) -> Work:
        """What the next ``steps`` decode steps of all members need."""
        flops, moved_bytes = self._dense_work(pool.size, pool.size)
        flops *= steps
        moved_bytes *= steps
        for attention in self._decode_attention:
            start, growth = _context(attention, pool)
            context = steps * start + growth * (steps * (steps + 1) // 2)
            work = attention.work
            flops += context * work.count * int(work.decode_flops_per_pair)
            moved_bytes += int(context * work.count * work.kv_bytes_per_token)
        return Work(flops, moved_bytes)

    def step_work(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> Work:
        """What one step that is not decode alone needs."""
        flops, moved_bytes = self._dense_work(plan.decoding + plan.prefill_tokens, sampled_rows)
        for attention in self._decode_attention:
            work = attention.work
            context = 0
            if plan.decoding:
                context = sum(_context(attention, pool))
                for request in plan.stalled:
                    context -= _attended(pool.context_of(request.origin), work.window_tokens)
            flops += context * work.count * int(work.decode_flops_per_pair)
            for _, tokens, computed_tokens in plan.chunks:
                pairs = attended_pairs(computed_tokens, tokens, work.window_tokens)
                flops += pairs * work.count * int(work.flops_per_pair)
                context += computed_tokens + tokens
            moved_bytes += int(context * work.count * work.kv_bytes_per_token)
        return Work(flops, moved_bytes)

    def _dense_work(self, tokens: int, sampled_rows: int) -> Work:
        layers = self._linear_work.get(tokens)
        if layers is None:
            layers = self._linear_work[tokens] = _work(self._layers, tokens)
        head = self._head_work.get(sampled_rows)
        if head is None:
            head = self._head_work[sampled_rows] = _work(self._head, sampled_rows)
        return Work(layers.flops + head.flops, layers.moved_bytes + head.moved_bytes)

    def _decode_attention_ns(self, pool: DecodePool, step: int, stalled: list[int] | None = None) -> float:
        """Attention of the ``step``-th decode step from now, without members whose contexts are in ``stalled``."""
        total = 0.0
        size = pool.size - len(stalled or ())
        for attention in self._decode_attention:
            start, growth = _context(attention, pool)
            context = float(step * growth + start)
            for tokens in stalled or ():
                context -= _attended(tokens, attention.work.window_tokens)
            memory = context * attention.memory_ns_per_context_token + size * attention.memory_ns_per_query
            total += max(memory, context * attention.compute_ns_per_pair, attention.floor_ns)
        return total

    def _compile(self, work: AttentionWork) -> "_DecodeAttention":
        roofline = self._roofline
        scale = work.count * NS_PER_S
        window = None if work.window_tokens is None else self.window_tokens.index(work.window_tokens)
        return _DecodeAttention(
            work,
            window,
            compute_ns_per_pair=scale * roofline.attention_compute_s(work.decode_flops_per_pair),
            memory_ns_per_context_token=scale * roofline.attention_memory_s(work.kv_bytes_per_token),
            memory_ns_per_query=scale * roofline.attention_memory_s(work.query_bytes_per_token),
            floor_ns=scale * roofline.efficiency.kernel_floor_s,
        )


def _work(operators: tuple[Operator, ...], tokens: int) -> Work:
    if tokens == 0:
        return Work(0, 0)
    flops = sum(op.count * op.flops(tokens) for op in operators)
    return Work(round(flops), round(sum(op.count * op.bytes(tokens) for op in operators)))


def _context(attention: _DecodeAttention, pool: DecodePool) -> tuple[int, int]:
    """Context tokens that the pool's members hold for this attention, and by how many a step adds to what it reads."""
    if attention.window is None:
        return pool.context_tokens, pool.size
    window = pool.windows[attention.window]
    return window.tokens, window.growing


def _attended(context_tokens: int, window_tokens: int | None) -> int:
    """Tokens that the next decode step of a request reads."""
    read = context_tokens + 1
    return read if window_tokens is None else min(read, window_tokens)
