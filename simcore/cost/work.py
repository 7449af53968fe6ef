"""What the steps of a replica needed: arithmetic, memory traffic and host time, summed up after the run."""

from collections import Counter
from collections.abc import Callable, Iterator

from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.cost.compiled_attention import attended_tokens
from simcore.cost.pipeline import PipelineCost
from simcore.cost.roofline import attended_pairs, read_context
from simcore.cost.split import Split
from simcore.cost.step_cost import StepCost
from simcore.cost.term import Counted, StepCounts, Term


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
        self._mixed_steps: dict[StepCounts, int] = {}
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
        counts = self._split.counts_of(plan, sampled_rows)
        self._mixed_steps[counts] = self._mixed_steps.get(counts, 0) + 1
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
            if len(self._windows) > 1:
                for index, window_tokens in enumerate(self._windows[1:], start=1):
                    self._prefill_context[index] += read_context(computed_tokens, tokens, window_tokens)
                    self._prefill_pairs[index] += attended_pairs(computed_tokens, tokens, window_tokens)

    @property
    def steps(self) -> int:
        """Steps so far."""
        return sum(self._decode_steps.values()) + sum(self._mixed_steps.values())

    def counts(self) -> Iterator[tuple[StepCounts, int]]:
        """The counts of steps, and how many such there were, in a fixed order."""
        for size, steps in sorted(self._decode_steps.items()):
            yield self._split.counts_of_decodes(size), steps
        yield from sorted(self._mixed_steps.items())

    def tokens_by_kind(self) -> dict[Counted, Counter[int]]:
        """How many steps have so many tokens of each kind that terms are over."""
        found: dict[Counted, Counter[int]] = {kind: Counter() for kind in Counted}
        for counts, steps in self.counts():
            for kind in Counted:
                found[kind][counts[kind]] += steps
        return found

    @property
    def decode_tokens(self) -> int:
        """Tokens of decodes."""
        return self._mixed_decodes + sum(size * steps for size, steps in self._decode_steps.items())

    @property
    def prefill_tokens(self) -> int:
        """Tokens of prompt chunks."""
        return self._prefill_tokens

    def host_s(self, cost: StepCost | PipelineCost) -> float:
        """Seconds that the host took."""
        return sum(steps * cost.host_ns(counts) for counts, steps in self.counts()) / NS_PER_S

    def flops(self, cost: StepCost) -> float:
        """Floating-point operations of one rank, the mean of all."""
        if not self.steps:
            return 0.0
        total = self._added(cost, Term.flops)
        for kind in cost.compiled_attention:
            index = self._windows.index(kind.work.window_tokens)
            total += kind.flops(self._decode_context[index], self._prefill_pairs[index]) / kind.data_ranks
        tokens = self.decode_tokens + self._prefill_tokens
        return total + sum(kind.flops(tokens) for kind in cost.linear_attention)

    def moved_bytes(self, cost: StepCost) -> float:
        """Bytes of weights, activations, queries and KV cache that one rank must read and write, the mean of all."""
        if not self.steps:
            return 0.0
        total = self._added(cost, Term.bytes)
        decoded, prefilled = self.decode_tokens, self._prefill_tokens
        for kind in cost.compiled_attention:
            index = self._windows.index(kind.work.window_tokens)
            context = self._decode_context[index] + self._prefill_context[index]
            total += kind.bytes(context, decoded, prefilled) / kind.data_ranks
        requests = decoded + self._prefill_chunks
        return total + sum(kind.bytes(decoded + prefilled, requests) for kind in cost.linear_attention)

    def _added(self, cost: StepCost, work: Callable[[Term, int], float]) -> float:
        """What the terms of all steps do, tokens dealt out evenly: what one rank has more, others have less."""
        steps_of = self.tokens_by_kind()
        even: Counter[int] = Counter()
        for tokens, steps in steps_of[Counted.ALL].items():
            even[self._split.own_tokens(tokens)] += steps
        steps_of[Counted.OWN] = even
        return sum(
            steps * work(term, tokens) for term in cost.token_terms for tokens, steps in steps_of[term.tokens].items()
        )
