"""Looks over a replica's shoulder, step by step, and works out the slow way what its books should say."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from unittest.mock import patch

from policies.batching import StepLimits
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.core.token_gaps import StepDurations
from simcore.cost.attention import AttentionWork
from simcore.cost.prices import AttentionPrices
from simcore.cost.roofline import attended_pairs
from simcore.cost.step_cost import StepCost
from simcore.cost.term import StepCounts
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.service.replica import Replica

NS_PER_S = 1_000_000_000


@dataclass
class StepWatch:
    """What was seen of a run that takes its steps one by one.

    ``token_times_ns`` holds the time of every token by request number, ``steps`` the start, the end and the requests in
    the system at the end of every step, by replica, ``chunk_tokens`` the tokens that each request had prefilled, and
    ``block_ns`` the KV blocks in use, added up over time.
    """

    token_times_ns: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    chunk_tokens: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    block_ns: int = 0
    stalled_steps: int = 0
    limits: dict[int, tuple[StepLimits, bool]] = field(default_factory=dict)
    attention: dict[tuple[int, AttentionWork], AttentionPrices] = field(default_factory=dict)

    def see(self, replica: Replica, plan: BatchPlan, start_ns: int, durations_ns: StepDurations) -> None:
        """Check a step that is about to be committed."""
        scheduler, state = replica.scheduler, replica.scheduler.state
        assert len(durations_ns) == 1
        duration_ns = int(durations_ns[0])
        left_out = {request.number for request in plan.stalled}
        decoding = [
            state.pool.context_of(request.origin)
            for request in state.running.values()
            if request.pool is not None and request.number not in left_out
        ]
        assert len(decoding) == plan.decoding
        _keeps_limits(replica.scheduler, plan, *self.limits[id(scheduler)])
        expected_ns = _price_ns(replica._executor._cost, plan, decoding, self.attention)
        assert abs(duration_ns - expected_ns) <= 1, "the step's price is not that of its requests taken one by one"
        in_system = state.running_requests + state.waiting_requests
        self.steps[replica.index].append((start_ns, start_ns + duration_ns, in_system))
        self.block_ns += scheduler.memory.used_blocks * duration_ns
        self.stalled_steps += bool(plan.stalled)
        for request, tokens, _ in plan.chunks:
            self.chunk_tokens[request.number] += tokens

    def note_tokens(self, before: dict[int, tuple[Request, int]], now_ns: int) -> None:
        """Take note of the tokens that the step yielded."""
        for number, (request, generated) in before.items():
            gained = request.generated_tokens - generated
            assert gained in (0, 1)
            if gained:
                self.token_times_ns[number].append(now_ns)

    def gaps_s(self, since_s: float) -> list[float]:
        """All gaps between successive tokens of a request that end after ``since_s``."""
        return [
            (later - earlier) / NS_PER_S
            for times in self.token_times_ns.values()
            for earlier, later in pairwise(times)
            if later > since_s * NS_PER_S
        ]


@contextmanager
def watching() -> Iterator[StepWatch]:
    """Watch all runs, of one replica or more, that happen meanwhile."""
    watch = StepWatch()
    decide, commit = Scheduler.plan, Replica._end

    def plan_and_watch(self: Scheduler, now_ns: int) -> BatchPlan:
        alone = self.state.running_requests + self.state.waiting_requests == 1
        watch.limits[id(self)] = self.config.batching.limits(self.view, now_ns / NS_PER_S), alone
        return decide(self, now_ns)

    def commit_and_watch(self: Replica, plan: BatchPlan, start_ns: int, result: StepResult, now_ns: int) -> None:
        watch.see(self, plan, start_ns, result.durations_ns)
        before = {number: (request, request.generated_tokens) for number, request in self.requests.by_number.items()}
        commit(self, plan, start_ns, result, now_ns)
        watch.note_tokens(before, now_ns)

    with patch.object(Scheduler, "plan", plan_and_watch), patch.object(Replica, "_end", commit_and_watch):
        yield watch


def _keeps_limits(scheduler: Scheduler, plan: BatchPlan, limits: StepLimits, alone: bool) -> None:
    tokens = plan.decoding + plan.prefill_tokens
    assert 1 <= tokens <= limits.max_batched_tokens
    assert scheduler.state.running_requests <= limits.max_running_requests
    assert sum(chunk.tokens for chunk in plan.chunks) == plan.prefill_tokens
    assert not (plan.preempted and plan.admitted), "a step that preempts admits nobody"
    assert not plan.stalled or tokens == limits.max_batched_tokens, "decodes stall only when the budget is spent"
    for request, chunk_tokens, computed_tokens in plan.chunks:
        assert 1 <= chunk_tokens <= request.tokens_to_compute
        assert computed_tokens == request.computed_tokens
        assert alone or chunk_tokens <= limits.max_chunk_tokens


def _price_ns(
    cost: StepCost, plan: BatchPlan, decoding: list[int], prices: dict[tuple[int, AttentionWork], AttentionPrices]
) -> int:
    """The price of a step from each of its requests; ``decoding`` are the context tokens of those that decode.

    ``prices`` keeps those of attention, which take long to make.
    """
    tokens = len(decoding) + sum(chunk.tokens for chunk in plan.chunks)
    sampled = len(decoding) + sum(chunk.tokens == chunk.request.tokens_to_compute for chunk in plan.chunks)
    total = cost.without_attention_ns(
        StepCounts(tokens, tokens, sampled, len(decoding), len(decoding) + len(plan.chunks))
    )
    roofline = cost.prices.roofline
    for work in (kind.work for kind in cost.compiled_attention):
        seconds = 0.0
        if (id(cost), work) not in prices:
            prices[id(cost), work] = cost.prices.attention(work)
        calibrated = prices[id(cost), work]
        if calibrated.context is not None and plan.chunks:
            seconds += calibrated.context.step_s([(tokens, computed) for _, tokens, computed in plan.chunks])
        for _, chunk_tokens, computed_tokens in plan.chunks if calibrated.context is None else ():
            pairs = attended_pairs(computed_tokens, chunk_tokens, work.window_tokens)
            context = computed_tokens + chunk_tokens
            if work.window_tokens is not None:
                context = min(context, work.window_tokens + chunk_tokens)
            moved = context * work.kv_bytes_per_token + chunk_tokens * work.query_bytes_per_token
            seconds += max(
                roofline.attention_compute_s(pairs * work.flops_per_pair),
                roofline.attention_memory_s(moved),
                roofline.efficiency.kernel_floor_s,
            )
        if decoding:
            window = work.window_tokens or max(decoding) + 1
            context = sum(min(held + 1, window) for held in decoding)
            if calibrated.generation is not None:
                assert calibrated.mixed is None, "not foreseen here"
                total += work.count * (seconds + calibrated.generation.seconds(len(decoding), context)) * NS_PER_S
                continue
            moved = context * work.kv_bytes_per_token + len(decoding) * work.query_bytes_per_token
            seconds += max(
                roofline.attention_compute_s(context * work.decode_flops_per_pair),
                roofline.attention_memory_s(moved),
                roofline.efficiency.kernel_floor_s,
            )
        total += work.count * seconds * NS_PER_S
    return round(total)
