"""Blocks of layer groups, one by one, under any sequence of what a scheduler may do to them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from policies.registry import policy_class, policy_names
from simcore.build.memory import describe_blocks
from simcore.core.content import Content, Run
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory import KVGroupManager
from simcore.memory.block_pool import Expiry
from simcore.memory.free_order import RankedOrder
from simcore.memory.kv_groups import KvCacheGroup, KvCacheLayout
from simcore.models import load_model

BLOCK_SIZE = 4


def layout_of(*windows):
    groups = tuple(KvCacheGroup((place,), window, BLOCK_SIZE) for place, window in enumerate(windows))
    return KvCacheLayout(groups, (100,))


def manager(blocks, *windows, **options):
    return KVGroupManager(blocks, BLOCK_SIZE, layout_of(*windows), 100, prefix_caching=True, **options)


def request_of(number, *runs, tenant=""):
    prompt = [Run(*run) for run in runs]
    tokens = sum(run.tokens for run in prompt)
    return Request(number, 0, tokens, tenant=tenant, content=Content(prompt, 10**6 * (number + 1)))


def served(memory, request):
    """Admit a request, compute its prompt in one step and let it leave; returns the tokens that it found."""
    cached, _ = memory.cached_prefix(request)
    memory.admit(request, cached, request.prompt_tokens - cached)
    request.computed_tokens = request.prompt_tokens
    memory.slide(request, cached)
    memory.check([(request, request.computed_tokens)])
    memory.release(request)
    return cached


def said(request, tokens):
    """The identities of a request's first tokens."""
    identities = [run.first + place for run in request.content.prompt for place in range(run.tokens)]
    output = [request.content.output_first + place for place in range(tokens)]
    return tuple((identities + output)[:tokens])


class Service(RuleBasedStateMachine):
    """Requests that share prefixes come, run in steps, are preempted, swapped and leave, in one decode pool."""

    eviction, windows = "lru", (None, 6)

    def __init__(self):
        super().__init__()
        order = None
        if self.eviction != "lru":
            describe = describe_blocks(load_model("smollm2-135m"), BLOCK_SIZE, 100)
            order = RankedOrder(policy_class("eviction", self.eviction)(), describe)
        self.now_s = 0.0
        expiry = Expiry(50.0, lambda: self.now_s)
        self.memory = manager(
            30,
            *self.windows,
            namespace=lambda request: request.tenant.encode(),
            order=order,
            expiry=expiry,
            withdraw_uncomputed=True,
        )
        self.pool = DecodePool(BLOCK_SIZE, tuple({window for window in self.windows if window}), len(self.windows))
        self.requests, self.running, self.waiting, self.away = [], [], [], []
        self.computed = set()
        """Every prefix that ended with a full block when it was computed, with its tenant."""

    def tokens_in(self, request):
        return request.tokens_in_memory

    @rule(
        documents=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 14)), min_size=1, max_size=3),
        tenant=st.sampled_from("ab"),
        priority=st.integers(0, 2),
    )
    def arrive(self, documents, tenant, priority):
        request = request_of(len(self.requests), *((100 * first, tokens) for first, tokens in documents), tenant=tenant)
        request.priority = priority
        self.requests.append(request)
        self.waiting.append(request)

    @precondition(lambda self: self.waiting)
    @rule(place=st.integers(0, 5), share=st.sampled_from([1.0, 0.5]))
    def admit(self, place, share):
        request = self.waiting[place % len(self.waiting)]
        cached, shared = self.memory.cached_prefix(request)
        assert cached % BLOCK_SIZE == 0
        assert cached < request.tokens_to_compute
        for end in range(BLOCK_SIZE, cached + 1, BLOCK_SIZE):
            assert (request.tenant, said(request, end)) in self.computed
        tokens = max(1, round((request.tokens_to_compute - cached) * share))
        if self.memory.most_blocks(cached + tokens) - shared > self.memory.free_blocks:
            return
        self.memory.admit(request, cached, tokens)
        self.waiting.remove(request)
        self.running.append(request)
        self.compute(request, cached, tokens)

    def compute(self, request, before, tokens):
        request.computed_tokens = before + tokens
        self.memory.slide(request, before)
        self.remember(request)
        if not request.tokens_to_compute:
            request.known_output_tokens += 1
            self.join(request)

    def join(self, request):
        request.pool, request.origin = self.pool, self.pool.join(request.computed_tokens)
        self.memory.decodes(request)

    def remember(self, request):
        for end in range(BLOCK_SIZE, request.tokens_in_memory + 1, BLOCK_SIZE):
            self.computed.add((request.tenant, said(request, end)))

    @precondition(lambda self: any(request.pool is None for request in self.running))
    @rule(place=st.integers(0, 5), tokens=st.integers(1, 9))
    def prefill(self, place, tokens):
        prefilling = [request for request in self.running if request.pool is None]
        request = prefilling[place % len(prefilling)]
        tokens = min(tokens, request.tokens_to_compute)
        if self.memory.blocks_to_grow(request.computed_tokens, tokens) <= self.memory.free_blocks:
            self.memory.grow(request, tokens)
            self.compute(request, request.computed_tokens, tokens)

    @precondition(lambda self: self.pool.size)
    @rule(stalled=st.lists(st.integers(0, 5), max_size=2, unique=True), steps=st.integers(1, 4))
    def decode(self, stalled, steps):
        """All that decode do, but for some that sit the first step out."""
        decoding = [request for request in self.running if request.pool is not None]
        stalled = [request for place, request in enumerate(decoding) if place in stalled]
        for _ in range(steps):
            if self.pool.blocks_due() > self.memory.free_blocks:
                break
            needless = sum(len(self.windows) * self.pool.needs_block(request.origin) for request in stalled)
            self.memory.allocate(self.pool.blocks_due() - needless)
            for request in stalled:
                self.memory.pauses(request)
                request.computed_tokens = self.pool.leave(request.origin)
            self.pool.advance(1)
            self.memory.slide_decoding(self.pool)
            for request in stalled:
                request.origin = self.pool.join(request.computed_tokens)
                self.memory.decodes(request)
            stalled = []
        for request in decoding:
            self.remember(request)

    def stop(self, request):
        self.running.remove(request)
        if request.pool is not None:
            request.known_output_tokens = request.generated_tokens
            request.computed_tokens = self.pool.leave(request.origin)
            request.pool = None

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 5), comes_back=st.booleans(), granted=st.integers(0, 9))
    def leave(self, place, comes_back, granted):
        """A request ends, or is preempted in the step that had granted it tokens."""
        request = self.running[place % len(self.running)]
        decoding = request.pool is not None
        self.stop(request)
        granted = min(granted, request.tokens_to_compute)
        if self.memory.blocks_to_grow(request.computed_tokens, granted) > self.memory.free_blocks:
            granted = 0
        if granted and decoding:
            self.memory.extend(request, self.memory.blocks_to_grow(request.computed_tokens, granted))
        elif granted:
            self.memory.grow(request, granted)
        self.memory.release(request, granted, comes_back)
        if comes_back:
            request.computed_tokens = 0
            self.waiting.append(request)

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 5))
    def swap_out(self, place):
        request = self.running[place % len(self.running)]
        decoding = request.pool is not None
        self.stop(request)
        self.memory.release(request, 0, comes_back=True)
        self.away.append((request, decoding))

    @precondition(lambda self: self.away)
    @rule()
    def swap_in(self):
        request, decoding = self.away[0]
        if self.memory.blocks_for(request.computed_tokens) <= self.memory.free_blocks:
            del self.away[0]
            self.memory.restore(request, 0)
            self.running.append(request)
            if decoding:
                self.join(request)

    @precondition(lambda self: any(request.pool is not None for request in self.running))
    @rule(place=st.integers(0, 5))
    def fork(self, place):
        """A second sequence goes on from where one is, with last blocks of its own."""
        decoding = [request for request in self.running if request.pool is not None]
        parent = decoding[place % len(decoding)]
        generated = parent.generated_tokens - 1
        parent.computed_tokens = parent.tokens_in_memory
        child = request_of(
            len(self.requests),
            *parent.content.prompt,
            Run(parent.content.output_first, generated),
            tenant=parent.tenant,
        )
        partial = parent.computed_tokens % BLOCK_SIZE > 0
        assert self.memory.can_fork(parent) == (self.memory.free_blocks >= partial * len(self.windows))
        if not self.memory.can_fork(parent):
            return
        copies = self.memory.fork(parent, child)
        child.computed_tokens = parent.computed_tokens
        assert len(copies) == partial * len(self.windows)
        for group in range(len(self.windows)):
            ours, own = (self.memory.block_table(request, group=group) for request in (parent, child))
            end = len(ours) - partial
            assert (len(own), own[:end]) == (len(ours), ours[:end])
            assert not partial or copies[group] == (ours[-1], own[-1])
        child.known_output_tokens = 1
        self.requests.append(child)
        self.running.append(child)
        self.join(child)

    @rule(seconds=st.sampled_from([0.1, 10.0, 60.0]))
    def wait(self, seconds):
        self.now_s += seconds

    @invariant()
    def books_are_right(self):
        self.memory.check([(request, request.tokens_in_memory) for request in self.running])

    def teardown(self):
        for request in list(self.running):
            self.stop(request)
            self.memory.release(request)
        self.books_are_right()
        assert self.memory.free_blocks == self.memory.total_blocks


@pytest.mark.parametrize("windows", [(None, 6), (5,), (None, 3, 9, 9, None)])
@pytest.mark.parametrize("eviction", policy_names("eviction"))
def test_books_and_hits_are_right_under_every_eviction(eviction, windows):
    machine = type("Service", (Service,), {"eviction": eviction, "windows": windows})
    test = machine.TestCase
    test.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
    test("runTest").runTest()


def test_what_left_a_window_is_free_and_still_found():
    memory = manager(40, None, 6)
    long = request_of(0, (0, 32))
    memory.admit(long, 0, 32)
    assert memory.free_blocks == 40 - 16
    long.computed_tokens = 32
    memory.slide(long, 0)
    assert memory.free_blocks == 40 - 8 - 2
    # Its first 16 tokens are found, though of the sliding group all of them are free by now.
    assert memory.cached_prefix(request_of(1, (0, 16), (900, 9))) == (16, 4)


def test_a_windowed_prefix_needs_only_its_last_window():
    memory = manager(14, 6)
    served(memory, request_of(0, (0, 32)))
    served(memory, request_of(1, (500, 36)))  # takes the six blank blocks, and the three released first
    # Gone are blocks 5, 4 and 3; what is left serves prefixes that end where two blocks in a row are there, or begin.
    prompts = {tokens: request_of(tokens, (0, tokens), (900, 9)) for tokens in (8, 12, 16, 24, 32)}
    found = {tokens: memory.cached_prefix(request)[0] for tokens, request in prompts.items()}
    assert found == {
        8: 8,
        12: 12,
        16: 12,
        24: 12,
        32: 32,
    }


def test_all_groups_must_serve_a_prefix():
    memory = manager(30, None, 6)
    served(memory, request_of(0, (0, 32)))
    assert memory.cached_prefix(request_of(1, (0, 32), (900, 1))) == (32, 0)
    served(memory, request_of(2, (500, 40)))  # of what is free, those that left the window go first
    assert memory.cached_prefix(request_of(3, (0, 24), (900, 9)))[0] == 0
    assert memory.cached_prefix(request_of(4, (0, 32), (900, 9)))[0] == 32


def test_generated_tokens_are_found_by_the_next_turn():
    memory = manager(40, None, 6)
    first, pool = request_of(0, (0, 10)), DecodePool(BLOCK_SIZE, (6,), 2)
    memory.admit(first, 0, 10)
    first.computed_tokens, first.known_output_tokens = 10, 1
    memory.slide(first, 0)
    first.pool, first.origin = pool, pool.join(10)
    memory.decodes(first)
    for _ in range(11):
        memory.allocate(pool.blocks_due())
        pool.advance(1)
        memory.slide_decoding(pool)
    memory.check([(first, 21)])
    first.known_output_tokens, first.computed_tokens, first.pool = (
        first.generated_tokens,
        pool.leave(first.origin),
        None,
    )
    memory.release(first)
    assert memory.cached_prefix(request_of(1, (0, 10), (first.content.output_first, 12), (900, 5)))[0] == 20


def test_pinned_prefixes_stay_with_the_window_that_they_need():
    memory = manager(20, None, 6)
    memory.load(request_of(-1, (0, 24)), 17)
    assert memory.pinned_blocks == 4 + 2
    memory.check([])
    served(memory, request_of(0, (500, 28)))
    assert memory.cached_prefix(request_of(1, (0, 24), (900, 9)))[0] == 16
    assert memory.unpinned_for(request_of(1, (0, 1))) == 14
    # What the sliding group has pinned is gone from sight if more of the prefix than that is found.
    wholes = [(0, 17), (0, 24), (0, 16), (300, 40)]
    assert [memory.total_for(request_of(2, whole)) for whole in wholes] == [18, 18, 14, 14]


@settings(max_examples=200, deadline=None)
@given(
    windows=st.lists(st.one_of(st.none(), st.integers(1, 20)), min_size=1, max_size=4).filter(any),
    pins=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=3),
    prompts=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=6),
    wanted=st.integers(1, 60),
)
def test_what_a_request_counts_on_is_there_and_held(windows, pins, prompts, wanted):
    memory = manager(60, *windows)
    for number, (prompt, pinned) in enumerate(pins):
        memory.load(request_of(-1 - number, (0, prompt), (1000 * number, 3)), pinned)
    for number, (shared, own) in enumerate(prompts):
        request = request_of(number, (0, shared), (1000 * (number + 1), own))
        _, held = memory.cached_prefix(request)
        if memory.most_blocks(request.prompt_tokens) - held <= memory.free_blocks:
            served(memory, request)
    request = request_of(99, (0, wanted))
    _, held = memory.cached_prefix(request)
    assert held >= memory.total_for(request) - memory.unpinned_for(request) >= 0


@settings(max_examples=200, deadline=None)
@given(
    windows=st.lists(st.one_of(st.none(), st.integers(1, 20)), min_size=1, max_size=4).filter(any),
    prompts=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=6),
    wanted=st.integers(1, 60),
)
def test_the_hit_is_the_longest_that_all_groups_can_serve(windows, prompts, wanted):
    memory = manager(40, *windows)
    for number, (shared, own) in enumerate(prompts):
        request = request_of(number, (0, shared), (1000 * (number + 1), own))
        if memory.most_blocks(request.prompt_tokens) <= memory.free_blocks:
            served(memory, request)
    request = request_of(99, (0, wanted), (10**5, 1))
    pool, keys = memory._pool, list(memory._keys.of(request).between(0, wanted // BLOCK_SIZE))

    def servable(blocks):
        return all(
            pool.find([key * len(windows) + place])
            for place, group in enumerate(memory._layout.groups)
            for key in keys[group.released_blocks(blocks * BLOCK_SIZE) : blocks]
        )

    longest = max(blocks for blocks in range(len(keys) + 1) if servable(blocks))
    assert memory.cached_prefix(request)[0] == longest * BLOCK_SIZE
