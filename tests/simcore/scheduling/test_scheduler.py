"""Which requests a step serves, with how many tokens, and who gives way."""

from dataclasses import replace

import pytest

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering import Ordering
from policies.ordering.fcfs import FirstComeFirstServed
from policies.ordering.two_level import TwoLevel
from policies.preemption.latest import Latest
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.invariants import check_invariants
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.scheduling.waiting_queue import KeyedQueue


class ShortestPromptFirst(Ordering):
    def key(self, request, now_s):
        return (request.prompt_tokens,)


def scheduler_of(prompts, blocks=100, block_size=4, ordering=None, reserve=True, watermark=0, **limits):
    """A scheduler with a request of each prompt length in its queue."""
    memory = KVBlockManager(blocks, block_size)
    batching = ChunkedPrefill(**limits)
    config = SchedulerConfig(
        ordering or FirstComeFirstServed(),
        batching,
        Latest(),
        reserve_whole_prompt=reserve,
        watermark_blocks=watermark,
    )
    scheduler = Scheduler(config, memory)
    for number, tokens in enumerate(prompts):
        scheduler.submit(Request(number, number, tokens), 0)
    return scheduler


def step(scheduler):
    """Run one step in which no request ends; returns the plan and its tokens by request number."""
    plan = scheduler.plan(0)
    tokens = {request.number: tokens for request, tokens in scheduler.scheduled(plan)}
    scheduler.commit(plan, StepResult([1]), 0)
    check_invariants(scheduler.state)
    return plan, tokens


def change(scheduler, **policies):
    """Give a scheduler other policies from now on."""
    scheduler.config = scheduler.state.config = replace(scheduler.config, **policies)


def test_the_budget_goes_to_running_requests_first_and_then_to_the_queue_in_order():
    scheduler = scheduler_of([3, 10, 5], max_batched_tokens=8)
    assert step(scheduler)[1] == {0: 3, 1: 5}
    assert step(scheduler)[1] == {0: 1, 1: 5, 2: 2}
    assert step(scheduler)[1] == {0: 1, 1: 1, 2: 3}
    plan, tokens = step(scheduler)
    assert tokens == {0: 1, 1: 1, 2: 1}
    assert plan.stable_steps > 1


def test_slots_bound_the_requests_that_run():
    scheduler = scheduler_of([3, 3, 3], max_running_requests=2)
    assert step(scheduler)[1] == {0: 3, 1: 3}
    plan, tokens = step(scheduler)
    assert tokens == {0: 1, 1: 1}
    assert not plan.admits_arrivals
    scheduler.state.finish(scheduler.state.running[0])
    assert step(scheduler)[1] == {1: 1, 2: 3}


def test_a_chunk_is_bounded_unless_the_request_is_alone():
    shared = scheduler_of([20, 20], max_batched_tokens=100, long_prefill_threshold_tokens=6)
    assert step(shared)[1] == {0: 6, 1: 6}
    alone = scheduler_of([20], max_batched_tokens=100, long_prefill_threshold_tokens=6)
    assert step(alone)[1] == {0: 20}


def test_a_prompt_that_does_not_fit_blocks_those_behind_it():
    scheduler = scheduler_of([40, 41, 4], blocks=20)
    assert step(scheduler)[1] == {0: 40}
    assert step(scheduler)[1] == {0: 1}
    assert scheduler.state.waiting.size == 2
    scheduler.state.finish(scheduler.state.running[0])
    assert step(scheduler)[1] == {1: 41, 2: 4}


def test_without_reservation_the_first_chunk_alone_must_fit():
    reserving = scheduler_of([30, 60], blocks=20, max_batched_tokens=32)
    assert step(reserving)[1] == {0: 30}
    eager = scheduler_of([30, 60], blocks=20, max_batched_tokens=32, reserve=False)
    assert step(eager)[1] == {0: 30, 1: 2}


def test_the_latest_gives_way_when_memory_runs_short():
    scheduler = scheduler_of([8, 8, 8], blocks=7)
    assert step(scheduler)[1] == {0: 8, 1: 8, 2: 8}
    plan, tokens = step(scheduler)  # each needs a third block, and one is left
    assert tokens == {0: 1, 1: 1}
    assert [request.number for request in plan.preempted] == [2]
    victim = plan.preempted[0]
    assert (victim.preemptions, victim.computed_tokens, victim.tokens_to_compute) == (1, 0, 9)
    assert scheduler.memory.free_blocks == 1
    assert scheduler.state.waiting.first(0.0) is victim


def test_a_victim_that_was_served_gives_its_tokens_and_blocks_back():
    """A policy that takes the first in order may pick one that this very step has served."""

    class Earliest(Latest):
        def victim(self, running):
            return next(iter(running))

    scheduler = scheduler_of([8, 8, 8], blocks=7)
    step(scheduler)
    change(scheduler, preemption=Earliest(), batching=ChunkedPrefill(max_batched_tokens=2))
    plan, tokens = step(scheduler)
    assert [request.number for request in plan.preempted] == [0]
    assert tokens == {1: 1, 2: 1}
    assert scheduler.memory.used_blocks == 6


def test_decodes_beyond_the_budget_stall_and_keep_what_they_hold():
    scheduler = scheduler_of([4, 5, 6], max_batched_tokens=20)
    step(scheduler)
    change(scheduler, batching=ChunkedPrefill(max_batched_tokens=2))
    plan, tokens = step(scheduler)
    assert tokens == {0: 1, 1: 1}
    assert [request.number for request in plan.stalled] == [2]
    assert [request.generated_tokens for request in scheduler.state.running.values()] == [2, 2, 1]
    assert plan.stable_steps == 1


def test_a_prompt_admitted_earlier_takes_its_tokens_before_decodes_admitted_later():
    scheduler = scheduler_of([50, 1], max_batched_tokens=7, long_prefill_threshold_tokens=6)
    assert step(scheduler)[1] == {0: 6, 1: 1}
    change(scheduler, batching=ChunkedPrefill(max_batched_tokens=4))
    plan, tokens = step(scheduler)
    assert tokens == {0: 4}
    assert [request.number for request in plan.stalled] == [1]


@pytest.mark.parametrize(("budget", "slots", "admits"), [(4, 9, True), (3, 9, True), (2, 9, False), (9, 2, False)])
def test_an_arrival_can_change_a_plan_only_where_there_is_room(budget, slots, admits):
    scheduler = scheduler_of([4, 5])
    step(scheduler)
    change(scheduler, batching=ChunkedPrefill(max_batched_tokens=budget, max_running_requests=slots))
    plan, tokens = step(scheduler)
    assert tokens == {0: 1, 1: 1}
    assert plan.admits_arrivals == admits


def test_blocks_before_a_shortage():
    """Three members of 5, 6 and 7 tokens in blocks of 4: they need a block each in the 4th, 3rd and 2nd step."""
    scheduler = scheduler_of([5, 6, 7], blocks=8)
    step(scheduler)
    scheduler.plan(0)
    assert scheduler.steps_before_shortage(50) == 3
    assert scheduler.steps_before_shortage(2) == 2
    assert scheduler.steps_before_shortage(1) == 1


def test_the_queue_follows_its_ordering_and_ties_keep_the_order_of_arrival():
    queue = KeyedQueue(ShortestPromptFirst())
    for number, tokens in ((3, 5), (1, 9), (2, 5), (0, 7)):
        queue.push(Request(number, 0, tokens), 0.0)
    assert [queue.pop().number for _ in range(4)] == [2, 3, 0, 1]


def test_a_preempted_request_returns_before_those_that_came_later():
    scheduler = scheduler_of([8, 8, 8], max_running_requests=2)
    step(scheduler)
    scheduler.state.preempt(scheduler.state.running[1], 1.0)
    assert scheduler.state.waiting.first(0.0).number == 1


def test_books_that_are_wrong_are_found():
    scheduler = scheduler_of([8])
    step(scheduler)
    scheduler.memory.allocate(1)
    with pytest.raises(AssertionError, match="recounted"):
        check_invariants(scheduler.state)


def test_a_watermark_keeps_blocks_free_beside_others_but_never_starves():
    scheduler = scheduler_of([32, 4, 4], blocks=10, watermark=3)
    assert step(scheduler)[1] == {0: 32}  # alone it may go below
    scheduler.state.finish(scheduler.state.running[0])
    assert step(scheduler)[1] == {1: 4, 2: 4}
    scheduler.submit(Request(3, 3, 20), 0)
    assert step(scheduler)[1] == {1: 1, 2: 1}  # 8 of 10 free before this step, 6 after it, and 5 + 3 are needed


class SecondToCome(Latest):
    def victim(self, running):
        return list(running)[1]


def test_where_a_request_gives_way_itself_the_step_goes_on():
    memory = KVBlockManager(3, 4)
    scheduler = Scheduler(SchedulerConfig(TwoLevel(), ChunkedPrefill(), SecondToCome()), memory)
    for number, (prompt, priority) in enumerate([(1, 0), (4, 5), (1, 6)]):
        scheduler.submit(Request(number, number, prompt, priority=priority), 0)
    assert step(scheduler)[1] == {0: 1, 1: 4, 2: 1}
    # All three blocks are held, and request 1 needs a second one.
    plan, tokens = step(scheduler)
    assert ([request.number for request in plan.preempted], tokens) == ([1], {0: 1, 2: 1})
    assert plan.stalled == []


def test_batching_hears_of_everybody_who_runs_no_more():
    class Remembering(ChunkedPrefill):
        hears_ended = True
        gone: list[int] = []  # noqa: RUF012

        def ended(self, request):
            self.gone.append(request.number)

    batching = Remembering(max_running_requests=2)
    scheduler = Scheduler(SchedulerConfig(FirstComeFirstServed(), batching, Latest()), KVBlockManager(100, 4))
    for number in range(3):
        scheduler.submit(Request(number, number, 3), 0)
    step(scheduler)
    running, waiting = scheduler.state.running, scheduler.state.waiting.first(0.0)
    scheduler.state.preempt(running[1], 0.0)
    assert batching.gone == [1]
    scheduler.state.finish(running[0])
    scheduler.drop(waiting)
    assert batching.gone == [1, 0, 2]
