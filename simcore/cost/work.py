"""What the steps of a replica needed: arithmetic, memory traffic and host time, summed up after the run."""

from collections.abc import Iterator

from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.cost.compiled_attention import attended_tokens
from simcore.cost.roofline import attended_pairs, read_context
from simcore.cost.split import Split
from simcore.cost.step_cost import StepCost

Shape = tuple[int, int, int]
"""Tokens, sampled rows and requests of a step."""


class WorkCounter:
    """Counts steps by shape, and the context tokens that attention read; whole numbers, so that order is no matter.

    Context is counted once in full (index 0), and once within each sliding window of the model.
    """

    __slots__ = (
        "_decode_context",
        "_decode_steps",
        "_mixed_decodes",
        "_mixed_steps",
        "_prefill_chunks",
        "_prefill_context",
        "_prefill_pairs",
        "_prefill_tokens",
        "_split",
        "_windows",
    )

    def __init__(self, window_tokens: tuple[int, ...], split: Split | None = None) -> None:
        self._split = split or Split()
        self._windows: tuple[int | None, ...] = (None, *window_tokens)
        self._decode_steps: dict[int, int] = {}
        self._mixed_steps: dict[Shape, int] = {}
        self._mixed_decodes = self._prefill_chunks = self._prefill_tokens = 0
        self._decode_context = [0] * len(self._windows)
        self._prefill_context = [0] * len(self._windows)
        self._prefill_pairs = [0] * len(self._windows)

    def count_decodes(self, pool: DecodePool, steps: int) -> None:
        """Count the next ``steps`` decode steps of all members."""
        size = pool.size
        self._decode_steps[size] = self._decode_steps.get(size, 0) + steps
        sum_to_steps = steps * (steps + 1) // 2
        self._decode_context[0] += steps * pool.context_tokens + size * sum_to_steps
        if pool.windows:
            for index, window in enumerate(pool.windows, start=1):
                self._decode_context[index] += steps * window.tokens + window.growing * sum_to_steps

    def count_step(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> None:
        """Count one step that is not decode alone."""
        tokens = self._split.step_tokens(plan.decoding, plan.prefill_tokens)
        shape = (tokens, sampled_rows, plan.decoding + len(plan.chunks))
        self._mixed_steps[shape] = self._mixed_steps.get(shape, 0) + 1
        self._mixed_decodes += plan.decoding
        self._prefill_chunks += len(plan.chunks)
        self._prefill_tokens += plan.prefill_tokens
        if plan.decoding:
            self._decode_context[0] += pool.context_tokens + pool.size
            for index, window in enumerate(pool.windows, start=1):
                self._decode_context[index] += window.tokens + window.growing
            for request in plan.stalled:
                context_tokens = pool.context_of(request.origin)
                for index, window_tokens in enumerate(self._windows):
                    self._decode_context[index] -= attended_tokens(context_tokens, window_tokens)
        for _, tokens, computed_tokens in plan.chunks:
            self._prefill_context[0] += computed_tokens + tokens
            self._prefill_pairs[0] += tokens * computed_tokens + tokens * (tokens + 1) // 2
            for index, window_tokens in enumerate(self._windows[1:], start=1):
                self._prefill_context[index] += read_context(computed_tokens, tokens, window_tokens)
                self._prefill_pairs[index] += attended_pairs(computed_tokens, tokens, window_tokens)

    @property
    def steps(self) -> int:
        """Steps so far."""
        return sum(self._decode_steps.values()) + sum(self._mixed_steps.values())

    def shapes(self) -> Iterator[tuple[Shape, int]]:
        """The shapes of steps, and how many such there were, in a fixed order."""
        for tokens, rows, requests, steps in self._shapes():
            yield (tokens, rows, requests), steps

    def attended(self, window_tokens: int | None) -> tuple[int, int]:
        """Context tokens that decodes read, and pairs that prompts attended to, in one layer of that window."""
        index = self._windows.index(window_tokens)
        return self._decode_context[index], self._prefill_pairs[index]

    @property
    def decode_tokens(self) -> int:
        """Tokens of decodes."""
        return self._mixed_decodes + sum(size * steps for size, steps in self._decode_steps.items())

    @property
    def prefill_tokens(self) -> int:
        """Tokens of prompt chunks."""
        return self._prefill_tokens

    def host_s(self, cost: StepCost) -> float:
        """Seconds that the host took."""
        return sum(steps * cost.host_ns(*shape) for shape, steps in self.shapes()) / NS_PER_S

    def flops(self, cost: StepCost) -> float:
        """Floating-point operations of one rank."""
        total = 0.0
        for tokens, rows, _, steps in self._shapes():
            total += steps * sum(op.count * op.flops(cost.seen_tokens(op, tokens)) for op in cost.layers)
            total += steps * sum(op.count * op.flops(cost.split.own_tokens(rows)) for op in cost.head)
        for work in cost.attention:
            index = self._windows.index(work.window_tokens)
            attention = self._decode_context[index] * work.decode_flops_per_pair
            attention += self._prefill_pairs[index] * work.flops_per_pair
            total += work.count * attention / (cost.split.data * cost.split.context)
        tokens = self.decode_tokens + self._prefill_tokens
        return total + sum(one.work.count * one.work.flops(tokens) / one.groups for one in cost.linear_attention)

    def moved_bytes(self, cost: StepCost) -> float:
        """Bytes of weights, activations and KV cache that one rank must read and write."""
        total = 0.0
        for tokens, rows, _, steps in self._shapes():
            total += steps * sum(op.count * op.bytes(cost.seen_tokens(op, tokens)) for op in cost.layers)
            total += steps * sum(op.count * op.bytes(cost.split.own_tokens(rows)) for op in cost.head if rows)
        for work in cost.attention:
            index = self._windows.index(work.window_tokens)
            context = self._decode_context[index] + self._prefill_context[index]
            total += work.count * work.kv_bytes_per_token * context / (cost.split.data * cost.split.context)
        decodes = self.decode_tokens
        tokens, requests = decodes + self._prefill_tokens, decodes + self._prefill_chunks
        states = (one.work.count * one.work.bytes(tokens, requests) / one.groups for one in cost.linear_attention)
        return total + sum(states)

    def _shapes(self) -> Iterator[tuple[int, int, int, int]]:
        """Tokens, sampled rows and requests of a step, and how many such steps there were, in a fixed order."""
        for size, steps in sorted(self._decode_steps.items()):
            yield size, size, size, steps
        for shape, steps in sorted(self._mixed_steps.items()):
            yield *shape, steps
