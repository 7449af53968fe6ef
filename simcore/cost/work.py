"""What the steps of a replica needed: arithmetic, memory traffic and host time, summed up after the run."""

from simcore.cost.roofline import attended_pairs
from simcore.cost.step_cost import StepCost, attended_tokens, decode_context
from simcore.scheduling.decode_pool import DecodePool
from simcore.scheduling.plan import BatchPlan


class WorkCounter:
    """Counts steps by shape, and the context tokens that attention read; whole numbers, so that order is no matter."""

    __slots__ = ("_attention", "_decode_context", "_prefill_context", "_prefill_pairs", "_shapes")

    def __init__(self, cost: StepCost) -> None:
        self._attention = cost.decode_attention
        self._shapes: dict[tuple[int, int, int], int] = {}
        self._decode_context = [0] * len(self._attention)
        self._prefill_context = [0] * len(self._attention)
        self._prefill_pairs = [0] * len(self._attention)

    def count_decodes(self, pool: DecodePool, steps: int) -> None:
        """Count the next ``steps`` decode steps of all members."""
        shape = (pool.size, pool.size, pool.size)
        self._shapes[shape] = self._shapes.get(shape, 0) + steps
        for index, attention in enumerate(self._attention):
            start, growth = decode_context(attention.window, pool)
            self._decode_context[index] += steps * start + growth * (steps * (steps + 1) // 2)

    def count_step(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> None:
        """Count one step that is not decode alone."""
        shape = (plan.decoding + plan.prefill_tokens, sampled_rows, plan.decoding + len(plan.chunks))
        self._shapes[shape] = self._shapes.get(shape, 0) + 1
        for index, attention in enumerate(self._attention):
            window_tokens = attention.work.window_tokens
            if plan.decoding:
                self._decode_context[index] += sum(decode_context(attention.window, pool))
                for request in plan.stalled:
                    self._decode_context[index] -= attended_tokens(pool.context_of(request.origin), window_tokens)
            for _, tokens, computed_tokens in plan.chunks:
                self._prefill_pairs[index] += attended_pairs(computed_tokens, tokens, window_tokens)
                self._prefill_context[index] += computed_tokens + tokens

    @property
    def steps(self) -> int:
        """Steps so far."""
        return sum(self._shapes.values())

    def host_s(self, cost: StepCost) -> float:
        """Seconds that the host took."""
        return sum(steps * cost.host_ns(requests) for (_, _, requests), steps in sorted(self._shapes.items())) / 1e9

    def flops(self, cost: StepCost) -> float:
        """Floating-point operations of one rank."""
        total = 0.0
        for (tokens, rows, _), steps in sorted(self._shapes.items()):
            total += steps * sum(op.count * op.flops(tokens) for op in cost.layers)
            total += steps * sum(op.count * op.flops(rows) for op in cost.head)
        for attention, decodes, pairs in zip(self._attention, self._decode_context, self._prefill_pairs, strict=True):
            work = attention.work
            total += work.count * (decodes * work.decode_flops_per_pair + pairs * work.flops_per_pair)
        return total

    def moved_bytes(self, cost: StepCost) -> float:
        """Bytes of weights, activations and KV cache that one rank must read and write."""
        total = 0.0
        for (tokens, rows, _), steps in sorted(self._shapes.items()):
            total += steps * sum(op.count * op.bytes(tokens) for op in cost.layers)
            if rows:
                total += steps * sum(op.count * op.bytes(rows) for op in cost.head)
        for attention, *contexts in zip(self._attention, self._decode_context, self._prefill_context, strict=True):
            total += attention.work.count * attention.work.kv_bytes_per_token * sum(contexts)
        return total
