"""The block manager under any sequence of what a scheduler may do to it."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from policies.registry import policy_class, policy_names
from simcore.build.memory import describe_blocks
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory import KVBlockManager
from simcore.memory.block_pool import Expiry
from simcore.memory.free_order import RankedOrder
from simcore.models import load_model

BLOCK_SIZE = 4
TENANTS = ("a", "b")


def tokens_of(request, tokens):
    """The identities of a request's first tokens."""
    identities = [run.first + place for run in request.content.prompt for place in range(run.tokens)]
    output = [request.content.output_first + place for place in range(tokens)]
    return tuple((identities + output)[:tokens])


class Service(RuleBasedStateMachine):
    """Requests that share prefixes come, run, are preempted and leave; every hit must be of tokens computed before."""

    eviction = "lru"

    def __init__(self):
        super().__init__()
        order = None
        if self.eviction != "lru":
            describe = describe_blocks(load_model("smollm2-135m"), BLOCK_SIZE, 100)
            order = RankedOrder(policy_class("eviction", self.eviction)(), describe)
        self.now_s = 0.0
        self.memory = KVBlockManager(
            12,
            BLOCK_SIZE,
            prefix_caching=True,
            namespace=lambda request: request.tenant.encode(),
            order=order,
            expiry=Expiry(50.0, lambda: self.now_s),
            withdraw_uncomputed=True,
        )
        self.requests, self.running, self.waiting = [], [], []
        self.loads, self.pins = 0, set()
        self.computed = set()
        """Every prefix whose last block was ever full, with its tenant: what the cache may know."""

    @rule(
        documents=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=3),
        tenant=st.sampled_from(TENANTS),
        priority=st.integers(0, 2),
    )
    def arrive(self, documents, tenant, priority):
        number = len(self.requests)
        prompt = [Run(100 * document, tokens) for document, tokens in documents]
        tokens = sum(run.tokens for run in prompt)
        content = Content(prompt, 10_000 * (number + 1))
        request = Request(number, 0, tokens, tenant=tenant, priority=priority, content=content)
        self.requests.append(request)
        self.waiting.append(request)

    @precondition(lambda self: self.waiting)
    @rule(place=st.integers(0, 5), share=st.sampled_from([1.0, 0.5]))
    def admit(self, place, share):
        request = self.waiting[place % len(self.waiting)]
        cached, shared = self.memory.cached_prefix(request)
        assert cached % BLOCK_SIZE == 0
        assert cached < request.prompt_tokens + request.known_output_tokens
        for end in range(BLOCK_SIZE, cached + 1, BLOCK_SIZE):
            assert (request.tenant, tokens_of(request, end)) in self.computed
        tokens = max(1, round((request.tokens_to_compute - cached) * share))
        if self.memory.blocks_for(cached + tokens) - shared > self.memory.free_blocks:
            return
        self.memory.admit(request, cached, tokens)
        self.waiting.remove(request)
        self.running.append(request)
        self.compute(request, cached + tokens)

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 5), tokens=st.integers(1, 6))
    def grow(self, place, tokens):
        request = self.running[place % len(self.running)]
        prefilling = request.tokens_to_compute > 0
        tokens = min(tokens, request.tokens_to_compute) if prefilling else tokens
        blocks = self.memory.blocks_to_grow(request.computed_tokens, tokens)
        if blocks > self.memory.free_blocks:
            return
        if prefilling:
            self.memory.grow(request, tokens)
        else:
            self.memory.allocate(blocks)
            request.known_output_tokens += tokens
        self.compute(request, request.computed_tokens + tokens)

    def compute(self, request, tokens):
        request.computed_tokens = tokens
        for end in range(BLOCK_SIZE, tokens + 1, BLOCK_SIZE):
            self.computed.add((request.tenant, tokens_of(request, end)))

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 5), comes_back=st.booleans(), granted=st.integers(0, 9))
    def leave(self, place, comes_back, granted):
        """A request ends, or gives way in the very step that had granted it tokens: these were never computed."""
        request = self.running.pop(place % len(self.running))
        granted = min(granted, request.tokens_to_compute)
        if self.memory.blocks_to_grow(request.computed_tokens, granted) > self.memory.free_blocks:
            granted = 0
        if granted:
            self.memory.grow(request, granted)
        self.memory.release(request, granted, comes_back)
        if comes_back:
            request.known_output_tokens += 1
            request.computed_tokens = 0
            self.waiting.append(request)

    @precondition(lambda self: any(not request.tokens_to_compute for request in self.running))
    @rule(place=st.integers(0, 5))
    def fork(self, place):
        """A second sequence goes on from where one is."""
        decoding = [request for request in self.running if not request.tokens_to_compute]
        parent = decoding[place % len(decoding)]
        number = len(self.requests)
        said = [*parent.content.prompt, Run(parent.content.output_first, parent.known_output_tokens)]
        child = Request(
            number,
            0,
            parent.prompt_tokens + parent.known_output_tokens,
            tenant=parent.tenant,
            content=Content(said, 10_000 * (number + 1)),
        )
        free_blocks, table = self.memory.free_blocks, self.memory.block_table(parent)
        partial = parent.computed_tokens % BLOCK_SIZE > 0
        assert self.memory.can_fork(parent) == (free_blocks > 0 or not partial)
        if not self.memory.can_fork(parent):
            return
        copies = self.memory.fork(parent, child)
        child.computed_tokens = parent.computed_tokens
        own = self.memory.block_table(child)
        assert self.memory.free_blocks == free_blocks - partial
        assert len(own) == len(table) == self.memory.blocks_for(parent.computed_tokens)
        assert own[: len(own) - partial] == table[: len(own) - partial]
        assert [tuple(copy) for copy in copies] == ([(table[-1], own[-1])] if partial else [])
        assert not partial or own[-1] != table[-1]
        self.requests.append(child)
        self.running.append(child)

    @precondition(lambda self: self.memory.pinned_blocks < 4)
    @rule(document=st.integers(0, 2), tokens=st.integers(1, 15), share=st.sampled_from([1.0, 0.5]))
    def pin(self, document, tokens, share):
        """A prompt is loaded in advance, its beginning for good, as far as memory goes."""
        self.loads += 1
        request = request_of(-self.loads, (100 * document, tokens), tenant="a")
        pinned = self.memory.pinned_blocks
        self.memory.load(request, round(tokens * share))
        for end in range(BLOCK_SIZE, tokens + 1, BLOCK_SIZE):
            self.computed.add(("a", tokens_of(request, end)))
        if self.memory.pinned_blocks - pinned == round(tokens * share) // BLOCK_SIZE:
            self.pins.add((document, round(tokens * share) // BLOCK_SIZE))

    @rule(seconds=st.sampled_from([0.1, 10.0, 60.0]))
    def wait(self, seconds):
        self.now_s += seconds

    @invariant()
    def books_are_right(self):
        self.memory.check([(request, request.computed_tokens) for request in self.running])

    @invariant()
    def what_is_pinned_is_found(self):
        for document, blocks in self.pins:
            asking = request_of(-1, (100 * document, blocks * BLOCK_SIZE), (900, 1), tenant="a")
            cached, held = self.memory.cached_prefix(asking)
            assert cached == blocks * BLOCK_SIZE
            # It counts on what is sure to be held when it comes.
            assert blocks <= self.memory.total_for(asking) - self.memory.unpinned_for(asking) <= held
            self.memory.forget(asking)

    def teardown(self):
        for request in self.running:
            self.memory.release(request)
        self.running = []
        self.books_are_right()
        assert self.memory.free_blocks == self.memory.total_blocks - self.memory.pinned_blocks


@pytest.mark.parametrize("eviction", policy_names("eviction"))
def test_books_and_hits_are_right_under_every_eviction(eviction):
    machine = type("Service", (Service,), {"eviction": eviction})
    test = machine.TestCase
    test.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
    test("runTest").runTest()


def request_of(number, *runs, tenant="", computed=0):
    prompt = [Run(*run) for run in runs]
    tokens = sum(run.tokens for run in prompt)
    return Request(number, 0, tokens, tenant=tenant, content=Content(prompt, 10**6 * (number + 1)))


def served(memory, request):
    """Admit a request as far as memory goes and let it leave; returns the tokens that it found."""
    cached, _ = memory.cached_prefix(request)
    memory.admit(request, cached, request.prompt_tokens - cached)
    request.computed_tokens = request.prompt_tokens
    memory.release(request)
    return cached


def test_a_prefix_is_found_up_to_the_last_token_but_one():
    memory = KVBlockManager(100, BLOCK_SIZE, prefix_caching=True)
    assert served(memory, request_of(0, (0, 16))) == 0
    assert served(memory, request_of(1, (0, 16))) == 12
    assert served(memory, request_of(2, (0, 17))) == 16
    assert served(memory, request_of(3, (0, 7), (500, 20))) == 4
    assert served(memory, request_of(4, (1, 16))) == 0


def test_without_prefix_caching_nothing_is_found():
    memory = KVBlockManager(100, BLOCK_SIZE)
    assert [served(memory, request_of(number, (0, 16))) for number in range(2)] == [0, 0]


@pytest.mark.parametrize(("withdraw", "found"), [(True, 4), (False, 8)])
def test_what_a_victim_was_granted_and_lost_stays_findable_unless_withdrawn(withdraw, found):
    memory = KVBlockManager(100, BLOCK_SIZE, prefix_caching=True, withdraw_uncomputed=withdraw)
    victim = request_of(0, (0, 20))
    memory.admit(victim, 0, 5)
    victim.computed_tokens = 5
    memory.grow(victim, 4)
    memory.release(victim, granted_tokens=4, comes_back=True)
    assert memory.cached_prefix(victim) == (found, 0)


def test_the_last_token_is_not_published_while_the_scheduler_does_not_know_it():
    memory = KVBlockManager(100, BLOCK_SIZE, prefix_caching=True)
    victim = request_of(0, (0, 6))
    memory.admit(victim, 0, 6)
    memory.allocate(1)
    victim.computed_tokens, victim.known_output_tokens, victim.unknown_tokens = 8, 3, 1
    memory.release(victim, comes_back=True)
    victim.computed_tokens = 0
    assert memory.cached_prefix(victim) == (4, 0)


def test_what_others_say_too_can_be_found_while_it_is_generated():
    memory = KVBlockManager(100, BLOCK_SIZE, prefix_caching=True)
    said = [Run(1, 1)] * 10
    first = Request(0, 0, 6, content=Content([Run(50, 6)], 10_000, said))
    memory.admit(first, 0, 6)
    memory.allocate(1)
    first.computed_tokens = 7
    follow_up = Request(1, 0, 12, content=Content([Run(50, 6), *said[:6]], 20_000))
    assert memory.cached_prefix(follow_up) == (4, 1)
    memory.publish_generated(first, 8)
    assert memory.cached_prefix(follow_up) == (8, 2)


def test_what_is_generated_is_found_by_the_next_turn():
    memory = KVBlockManager(100, BLOCK_SIZE, prefix_caching=True)
    first = request_of(0, (0, 6))
    memory.admit(first, 0, 6)
    memory.allocate(2)
    first.computed_tokens, first.known_output_tokens = 6 + 7, 8
    memory.release(first)
    follow_up = request_of(1, (0, 6), (first.content.output_first, 8), (900, 5))
    assert memory.cached_prefix(follow_up) == (12, 0)


def test_of_a_prefix_the_tail_goes_first():
    memory = KVBlockManager(6, BLOCK_SIZE, prefix_caching=True)
    served(memory, request_of(0, (0, 20)))  # five blocks cached, one blank
    served(memory, request_of(1, (500, 12)))  # takes the blank one, and the last two of those
    assert memory.cached_prefix(request_of(2, (0, 21)))[0] == 12


def test_what_expired_is_not_found():
    now_s = [0.0]
    memory = KVBlockManager(9, BLOCK_SIZE, prefix_caching=True, expiry=Expiry(10.0, lambda: now_s[0]))
    served(memory, request_of(0, (0, 17)))
    now_s[0] = 9.9
    assert memory.cached_prefix(request_of(1, (0, 17)))[0] == 16
    now_s[0] = 10.0
    assert memory.cached_prefix(request_of(1, (0, 17)))[0] == 0


def test_what_was_computed_again_after_it_expired_is_found():
    now_s = [0.0]
    memory = KVBlockManager(30, BLOCK_SIZE, prefix_caching=True, expiry=Expiry(10.0, lambda: now_s[0]))
    found = []
    for number, time_s in enumerate([0.0, 1.0, 20.0, 21.0, 22.0]):
        now_s[0] = time_s
        found.append(served(memory, request_of(number, (0, 17))))
    assert found == [0, 16, 0, 16, 16]


@pytest.mark.parametrize(
    ("eviction", "kept"),
    [("lru", {"late"}), ("lfu", {"often"}), ("priority", {"urgent"}), ("length-aware", {"often"})],
)
def test_each_policy_keeps_what_it_holds_dear(eviction, kept):
    describe = describe_blocks(load_model("smollm2-135m"), BLOCK_SIZE, 100)
    order = RankedOrder(policy_class("eviction", eviction)(), describe)
    memory = KVBlockManager(8, BLOCK_SIZE, prefix_caching=True, order=order)
    starts = {"often": 0, "urgent": 1000, "late": 2000}
    for number, name in enumerate(["often", "often", "often", "urgent", "late"]):
        request = request_of(number, (starts[name], 9))
        request.priority = 0 if name == "urgent" else 5
        served(memory, request)
    served(memory, request_of(9, (5000, 24)))  # leaves room for one of the three
    found = {name for name, first in starts.items() if memory.cached_prefix(request_of(first + 10, (first, 9)))[0] == 8}
    assert found == kept
