"""Prefill and decode in turns: how prompts fill a step, and who gives way."""

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.commitment.new_token_ratio import NewTokenRatio
from policies.preemption.fewest_generated import FewestGenerated
from simcore.core.content import BlockKeys, Run
from simcore.core.request import Request
from simcore.memory.page_memory import PageHolding, PageMemory
from simcore.scheduling.turns.queue import TurnQueue
from simcore.scheduling.turns.scheduler import TurnScheduler
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import TurnLimits


def keys_of(number, prompt, page=1):
    return BlockKeys([Run(7, min(prompt, 40)), Run(10**6 * (number + 1), 10**5)], page)


def seat_of(number, prompt, limit=8, priority=0, page=1):
    request = Request(number, 0, prompt, limit, priority=priority)
    return Seat(request, PageHolding(keys_of(number, prompt, page), prompt))


def scheduler_of(memory, order="fcfs", by_priority=False, **limits):
    given = TurnLimits(**{"slots": 64, "input_tokens": 16384, "chunk_tokens": None} | limits)
    queue = TurnQueue(order, memory, by_priority, lambda seat: keys_of(seat.number, seat.prompt_tokens))
    return TurnScheduler(given, memory, queue, NewTokenRatio(), FewestGenerated())


def prompts(scheduler, steps):
    said = []
    for _ in range(steps):
        turn = scheduler.plan()
        scheduler.commit(turn, set())
        said.append(dict(zip((seat.number for seat in turn.seats), turn.new_tokens, strict=True)))
    return said


def test_prompts_are_cut_to_fill_the_budget():
    scheduler = scheduler_of(PageMemory(10_000, 1, shares=False), chunk_tokens=800)
    for number, prompt in enumerate((400, 800, 300)):
        scheduler.submit(seat_of(number, prompt))
    assert prompts(scheduler, 3) == [{0: 400, 1: 400}, {1: 400, 2: 300}, {0: 1, 1: 1, 2: 1}]


def test_where_prompts_are_not_cut_they_wait_until_they_fit():
    scheduler = scheduler_of(PageMemory(10_000, 1, shares=False), input_tokens=800)
    for number, prompt in enumerate((400, 800, 300)):
        scheduler.submit(seat_of(number, prompt))
    assert prompts(scheduler, 2) == [{0: 400}, {1: 800}]


def test_of_equals_the_longest_prompt_is_retracted_and_comes_back():
    scheduler = scheduler_of(PageMemory(44, 1, shares=False))
    scheduler.commitment = NewTokenRatio(0.01)
    for number, prompt in enumerate((20, 10)):
        scheduler.submit(seat_of(number, prompt, limit=12))
    assert prompts(scheduler, 10) == [{0: 20}, {1: 10}, *[{0: 1, 1: 1}] * 7, {1: 1}]
    assert [seat.number for seat in scheduler.retracted] == [0]
    assert [seat.number for seat in scheduler.queue.seats] == [0]


def test_an_urgent_request_takes_the_slot_of_a_patient_one():
    scheduler = scheduler_of(PageMemory(10_000, 1, shares=False), by_priority=True, slots=1, displaces_beyond=2)
    scheduler.submit(seat_of(0, 20, priority=5))
    assert prompts(scheduler, 2) == [{0: 20}, {0: 1}]
    scheduler.submit(seat_of(1, 30, priority=3))
    assert prompts(scheduler, 1) == [{0: 1}]
    scheduler.submit(seat_of(2, 10, priority=2))
    assert prompts(scheduler, 1) == [{2: 10}]
    assert [seat.number for seat in scheduler.displaced] == [0]


@settings(deadline=None, derandomize=True)
@given(
    requests=st.lists(
        st.tuples(st.integers(1, 90), st.integers(1, 25), st.integers(0, 3), st.integers(0, 40)),
        min_size=1,
        max_size=12,
    ),
    order=st.sampled_from(["fcfs", "lof", "lpm", "dfs-weight"]),
    page=st.sampled_from([1, 4]),
    chunk=st.sampled_from([None, 16, 64]),
    shares=st.booleans(),
    mixed=st.booleans(),
    ends_late=st.booleans(),
    displaces=st.booleans(),
)
def test_everybody_ends_and_all_memory_comes_back(requests, order, page, chunk, shares, mixed, ends_late, displaces):
    memory = PageMemory(160, page, shares)
    scheduler = scheduler_of(
        memory,
        order if not displaces else "fcfs",
        displaces,
        slots=4,
        chunk_tokens=chunk,
        mixed=mixed and chunk is not None,
        ends_late=ends_late,
        displaces_beyond=0 if displaces else None,
    )
    outputs = {number: output for number, (_, output, _, _) in enumerate(requests)}
    arrivals = {}
    for number, (prompt, output, priority, step) in enumerate(requests):
        arrivals.setdefault(step, []).append(seat_of(number, prompt, output, priority, page))
    last, ended, step = None, set(), 0
    while len(ended) < len(requests):
        for seat in arrivals.pop(step, ()):
            scheduler.submit(seat)
        turn = scheduler.plan()
        assert not scheduler.dropped
        done = last if ends_late else turn
        if done is not None:
            ending = {seat.number for seat in done.seats if seat.generated_tokens + 1 == outputs[seat.number]}
            ended |= {seat.number for seat in scheduler.commit(done, ending)}
        if turn is not None and chunk is not None and turn.mode == "extend":
            assert sum(turn.new_tokens) <= chunk
        last, step = turn, step + 1
        assert 0 <= memory.free_tokens + memory.tree.tokens <= memory.total_tokens
        assert step < 3000
    assert memory.free_tokens + memory.tree.tokens == memory.total_tokens
    assert memory.tree.evictable == memory.tree.tokens
