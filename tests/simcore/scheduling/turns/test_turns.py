"""Prefill and decode in turns: how prompts fill a step, and who gives way."""

from math import inf

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from policies.batching.prefill_turns import PrefillTurns
from policies.commitment.new_token_ratio import NewTokenRatio
from policies.ordering.as_queued import AsQueued
from policies.ordering.depth_first import DepthFirst
from policies.ordering.longest_output import LongestOutputFirst
from policies.ordering.longest_prefix import LongestPrefixFirst
from policies.ordering.two_level import TwoLevel
from policies.preemption.fewest_generated import FewestGenerated
from policies.preemption.latest import Latest
from simcore.core.clock import NS_PER_S
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory.radix_counter import KVRadixCounter
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.invariants import check_invariants
from simcore.scheduling.step import StepResult
from simcore.scheduling.turns.scheduler import TurnScheduler


def request_of(number, prompt, limit=8, priority=0, **says):
    own = Run(10**6 * (number + 1), max(prompt - 40, 0))
    content = Content([Run(7, min(prompt, 40)), own], 10**9 * (number + 1))
    return Request(number, 0, prompt, limit, priority=priority, content=content, **says)


def scheduler_of(memory, ordering=None, preemption=None, ends_late=False, **batching):
    policy = PrefillTurns(**{"max_batched_tokens": 16384, "max_running_requests": 64} | batching)
    config = SchedulerConfig(ordering or AsQueued(), policy, preemption or FewestGenerated(), ends_late=ends_late)
    return TurnScheduler(config, memory, policy.turns)


def step(scheduler, number, output_tokens=None):
    """One step; returns its plan and who is complete."""
    plan = scheduler.plan(number * NS_PER_S)
    if plan.empty:
        return plan, plan.completed
    ended = [
        request
        for request, tokens in scheduler.scheduled(plan)
        if scheduler.state.goes_on(request)
        and (request.pool is not None or tokens == request.tokens_to_compute)
        and request.generated_tokens + 1 == (output_tokens or {}).get(request.number, inf)
    ]
    scheduler.commit(plan, StepResult([NS_PER_S], ended), (number + 1) * NS_PER_S)
    check_invariants(scheduler.state)
    return plan, plan.completed if scheduler.config.ends_late else ended


def prompts(scheduler, steps):
    said = []
    for number in range(steps):
        step(scheduler, number)
        turn = scheduler.batch.turn
        tokens = [*turn.new_tokens, *[1] * len(turn.decoding)]
        said.append(dict(zip((seat.number for seat in turn.seats), tokens, strict=True)))
    return said


def submitted(scheduler, *requests):
    for request in requests:
        scheduler.submit(request, 0)
    return scheduler


def test_prompts_are_cut_to_fill_the_budget():
    scheduler = scheduler_of(KVRadixCounter(10_000, 1, shares=False), max_batched_tokens=800)
    submitted(scheduler, *(request_of(number, prompt) for number, prompt in enumerate((400, 800, 300))))
    assert prompts(scheduler, 3) == [{0: 400, 1: 400}, {1: 400, 2: 300}, {0: 1, 1: 1, 2: 1}]


def test_where_prompts_are_not_cut_they_wait_until_they_fit():
    scheduler = scheduler_of(KVRadixCounter(10_000, 1, shares=False), max_batched_tokens=800, cut_prompts=False)
    submitted(scheduler, *(request_of(number, prompt) for number, prompt in enumerate((400, 800, 300))))
    assert prompts(scheduler, 2) == [{0: 400}, {1: 800}]


@pytest.mark.parametrize(("preemption", "victim"), [(FewestGenerated(), 0), (Latest(), 1)])
def test_who_is_retracted_comes_back(preemption, victim):
    """Of equals the longest prompt goes by SGLang's rule."""
    memory = KVRadixCounter(44, 1, shares=False)
    scheduler = scheduler_of(memory, preemption=preemption, commitment=NewTokenRatio(0.01))
    submitted(scheduler, *(request_of(number, prompt, limit=12) for number, prompt in enumerate((20, 10))))
    assert prompts(scheduler, 10) == [{0: 20}, {1: 10}, *[{0: 1, 1: 1}] * 7, {1 - victim: 1}]
    assert [seat.number for seat in scheduler.batch.retracted] == [victim]
    assert scheduler.state.waiting.first(0.0).number == victim


def test_an_urgent_request_takes_the_slot_of_a_patient_one():
    memory = KVRadixCounter(10_000, 1, shares=False)
    scheduler = scheduler_of(memory, TwoLevel(AsQueued()), max_running_requests=1, displaces_beyond=2)
    submitted(scheduler, request_of(0, 20, priority=5))
    assert prompts(scheduler, 2) == [{0: 20}, {0: 1}]
    submitted(scheduler, request_of(1, 30, priority=3))
    assert prompts(scheduler, 1) == [{0: 1}]
    submitted(scheduler, request_of(2, 10, priority=2))
    assert prompts(scheduler, 1) == [{2: 10}]
    assert [seat.number for seat in scheduler.batch.displaced] == [0]


def test_who_ends_unforeseen_is_in_one_step_more():
    for limit, steps in ((3, 1), (9, 2)):
        scheduler = scheduler_of(KVRadixCounter(1000, 1), ends_late=True)
        submitted(scheduler, request_of(0, 20, limit=limit))
        steps_with = 0
        for number in range(6):
            plan, _ = step(scheduler, number, {0: 3})
            steps_with += scheduler.batch.turn is not None
            if plan.released:
                break
        assert steps_with == 2 + steps
        assert plan.released[0].known_output_tokens == 3


def test_a_longer_prompt_is_along_the_branch_of_a_shorter():
    memory = KVRadixCounter(1000, 1)
    scheduler = submitted(scheduler_of(memory, DepthFirst()), request_of(9, 60))
    for number in range(2):
        step(scheduler, number, {9: 1})
    same = [Run(7, 40)]
    waiting = [
        Request(0, 0, 30, 4, content=Content([Run(10**7, 30)], 10**8)),
        Request(1, 0, 41, 4, content=Content([*same, Run(10**8, 1)], 10**9)),
        Request(2, 0, 61, 4, content=Content([*same, Run(10**7, 20), Run(5, 1)], 10**9)),
        Request(3, 0, 61, 4, content=Content([*same, Run(10**7, 20), Run(6, 1)], 10**9)),
    ]
    submitted(scheduler, *waiting)
    step(scheduler, 2)
    assert [seat.number for seat in scheduler.batch.prioritised] == [2, 3, 1, 0]


@settings(deadline=None, derandomize=True, max_examples=300, phases=(Phase.explicit, Phase.generate))
@given(
    requests=st.lists(
        st.tuples(st.integers(1, 90), st.integers(1, 25), st.integers(0, 3), st.integers(0, 40), st.integers(0, 9)),
        min_size=1,
        max_size=12,
    ),
    ordering=st.sampled_from([AsQueued, LongestOutputFirst, LongestPrefixFirst, DepthFirst]),
    page=st.sampled_from([1, 4]),
    chunk=st.sampled_from([None, 16, 64]),
    shares=st.booleans(),
    mixed=st.booleans(),
    ends_late=st.booleans(),
    displaces=st.booleans(),
)
def test_everybody_ends_and_all_memory_comes_back(requests, ordering, page, chunk, shares, mixed, ends_late, displaces):
    """An output may end before its limit."""
    memory = KVRadixCounter(160 // page, page, shares)
    scheduler = scheduler_of(
        memory,
        TwoLevel(AsQueued()) if displaces else ordering(),
        ends_late=ends_late,
        max_running_requests=4,
        max_batched_tokens=chunk or 16384,
        cut_prompts=chunk is not None,
        mixed=mixed and chunk is not None,
        displaces_beyond=0 if displaces else None,
    )
    outputs = {number: output for number, (_, output, *_) in enumerate(requests)}
    arrivals = {}
    for number, (prompt, output, priority, when, unused) in enumerate(requests):
        arrivals.setdefault(when, []).append(request_of(number, prompt, output + unused, priority))
    ended = set()
    for number in range(3000):
        for request in arrivals.pop(number, ()):
            scheduler.submit(request, number * NS_PER_S)
        plan, last = step(scheduler, number, outputs)
        assert not plan.dropped
        assert not ended & {request.number for request in last}
        ended |= {request.number for request in last}
        if chunk is not None and not plan.decoding:
            assert plan.prefill_tokens <= chunk
        if plan.stable_steps > 1:
            assert not scheduler.state.waiting.size or scheduler.batch.full or scheduler.batch.slots_left() <= 0
        if len(ended) == len(requests) and not scheduler.state.running:
            break
    assert len(ended) == len(requests)
    assert not scheduler.state.running
    assert memory.free_blocks == memory.total_blocks
    assert shares or memory.blank_blocks == memory.total_blocks
