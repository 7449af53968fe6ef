"""The queue that looks at the prefix cache."""

import pytest

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering.longest_prefix import LongestPrefixFirst
from policies.preemption.latest import Latest
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory import KVBlockManager
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.scheduler import Scheduler


def request_of(number, *runs):
    prompt = [Run(*run) for run in runs]
    return Request(number, number, sum(run.tokens for run in prompt), content=Content(prompt, 10**6 * (number + 1)))


def scheduler_of(look_ahead=128, **limits):
    memory = KVBlockManager(100, 4, prefix_caching=True)
    return Scheduler(SchedulerConfig(LongestPrefixFirst(look_ahead), ChunkedPrefill(**limits), Latest()), memory)


def admitted(scheduler):
    """The requests that the next steps admit, in order; each ends at once."""
    order = []
    while scheduler.state.waiting.size:
        plan = scheduler.plan(len(order))
        for request in scheduler.state.commit_chunks(plan):
            order.append(request.number)
            request.known_output_tokens += 1
            scheduler.state.finish(request)
    return order


def with_a_served_prompt(**options):
    scheduler = scheduler_of(max_running_requests=1, **options)
    scheduler.submit(request_of(0, (0, 40)), 0)
    assert admitted(scheduler) == [0]
    for number, cached in enumerate([0, 8, 20, 8], start=1):
        scheduler.submit(request_of(number, (0, cached), (1000 * number, 10)), 0)
    return scheduler


def test_the_longest_cached_prefix_is_first_and_ties_keep_arrival_order():
    assert admitted(with_a_served_prompt()) == [3, 2, 4, 1]


@pytest.mark.parametrize("look_ahead", [1, 3])
def test_a_queue_that_is_too_long_is_in_order_of_arrival_until_it_is_not(look_ahead):
    expected = {1: [1, 2, 3, 4], 3: [1, 3, 2, 4]}
    assert admitted(with_a_served_prompt(look_ahead=look_ahead)) == expected[look_ahead]


def test_what_one_admission_caches_counts_from_the_next_step_on():
    scheduler = scheduler_of(max_running_requests=2)
    scheduler.submit(request_of(0, (0, 40)), 0)
    scheduler.submit(request_of(1, (500, 12)), 0)
    scheduler.submit(request_of(2, (0, 40), (900, 4)), 0)
    assert admitted(scheduler) == [0, 1, 2]
    assert scheduler.state.running == {}
