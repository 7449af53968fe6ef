"""Queues: who is first, whoever leaves and however long somebody waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.ordering import Ordering
from policies.ordering.mlfq import MultiLevelFeedbackQueue
from policies.ordering.vtc import VirtualTokenCounter
from simcore.core.decode_pool import DecodePool
from simcore.core.request import UNSET, Request
from simcore.scheduling.grouped_queue import GroupedQueue
from simcore.scheduling.waiting_queue import KeyedQueue


class LongestPromptFirst(Ordering):
    """Promotes whoever has waited ten seconds."""

    def __init__(self, promotes):
        self._promotes = promotes
        self.starved = set()

    @property
    def promotes_after_s(self):
        return 10.0 if self._promotes else None

    def promoted(self, request):
        self.starved.add(request.number)

    def key(self, request, now_s):
        return (-10_000 if request.number in self.starved else -request.prompt_tokens,)


def by_hand(waiting, ordering, now_s):
    """The request that must be first of those waiting since the given times."""
    for request, since_s in waiting.items():
        if ordering.promotes_after_s is not None and since_s + 10.0 <= now_s:
            ordering.starved.add(request.number)
    return min(waiting, key=lambda request: (ordering.key(request, now_s), request.number))


@given(st.booleans(), st.lists(st.tuples(st.sampled_from(["push", "pop", "remove", "wait"]), st.integers(1, 9))))
def test_the_first_is_the_one_with_the_least_key_of_those_that_wait(promotes, events):
    ordering, expected = LongestPromptFirst(promotes), LongestPromptFirst(promotes)
    queue, waiting, now_s = KeyedQueue(ordering), {}, 0.0
    for number, (event, amount) in enumerate(events):
        if event == "push":
            request = Request(number, number, amount)
            queue.push(request, now_s)
            waiting[request] = now_s
        elif event == "wait":
            now_s += amount
        elif waiting:
            first = by_hand(waiting, expected, now_s)
            assert queue.first(now_s) is first
            leaves = first if event == "pop" else list(waiting)[amount % len(waiting)]
            assert (queue.pop() if event == "pop" else queue.remove(leaves)) in (first, None)
            assert leaves.ticket == UNSET
            del waiting[leaves]
        assert queue.size == len(waiting)
        assert queue.tokens == sum(request.prompt_tokens for request in waiting)


def test_a_queue_keeps_no_more_entries_than_twice_those_that_wait():
    """Also where those that leave stand at the end, where nobody looks."""
    queue = KeyedQueue(LongestPromptFirst(promotes=True))
    requests = [Request(number, number, 1000 - number) for number in range(1000)]
    for request in requests:
        queue.push(request, 0.0)
    for request in requests[10:]:
        queue.remove(request)
    assert len(queue._heap.entries) <= 20
    assert len(queue._since.entries) <= 20
    assert queue.first(0.0) is requests[0]


def test_the_next_promotion_is_that_of_whoever_has_waited_longest():
    queue = KeyedQueue(MultiLevelFeedbackQueue(starvation_s=10.0))
    assert queue.next_promotion_s() is None
    long, short = Request(0, 0, 100_000), Request(1, 0, 10)
    queue.push(long, 1.0)
    queue.push(short, 5.0)
    assert (queue.next_promotion_s(), queue.first(10.9)) == (11.0, short)
    assert (queue.first(11.0), queue.next_promotion_s()) == (long, 15.0)
    assert queue.pop() is long
    assert queue.first(12.0) is short


@pytest.mark.parametrize("leaves", [0, 1, 2])
def test_a_group_whose_last_request_leaves_waits_no_more(leaves):
    queue = GroupedQueue(VirtualTokenCounter(), DecodePool(16))
    requests = [Request(0, 0, 10, tenant="a"), Request(1, 1, 10, tenant="a"), Request(2, 2, 10, tenant="b")]
    for request in requests:
        queue.push(request, 0.0)
    queue.first(0.0)
    queue.remove(requests[leaves])
    rest = [request for request in requests if request is not requests[leaves]]
    assert queue.size == 2
    assert set(queue.heads()) == ({rest[0], rest[1]} if leaves < 2 else {rest[0]})
    while queue.size:
        request = queue.first(0.0)
        queue.pop()
        rest.remove(request)
    assert not rest
    assert not queue.heads()
