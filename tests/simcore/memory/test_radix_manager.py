"""KV memory with a radix tree under any sequence of what a scheduler may do to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from policies.registry import policy_class, policy_names
from simcore.build.memory import describe_runs
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory import KVBlockManager, KVRadixManager
from simcore.memory.block_pool import Expiry
from simcore.memory.leaf_order import LeafOrder
from simcore.models import load_model

TENANTS = ("a", "b")


def request_of(number, prompt, tenant="", priority=0):
    tokens = sum(run.tokens for run in prompt)
    return Request(number, 0, tokens, tenant=tenant, priority=priority, content=Content(prompt, 10**6 * (number + 1)))


def text_of(request):
    return [*request.content.prompt, Run(request.content.output_first, 10**5)]


def tokens_of(request, tokens):
    """The identities of a request's first tokens."""
    identities = [run.first + place for run in text_of(request) for place in range(min(run.tokens, tokens))]
    return tuple(identities[:tokens])


class Service(RuleBasedStateMachine):
    """Requests that share prefixes come, run, are preempted and leave; chunks are computed after they are planned."""

    eviction = "lru"
    block_size = 4

    def __init__(self):
        super().__init__()
        order = None
        if self.eviction != "lru":
            describe = describe_runs(load_model("smollm2-135m"), self.block_size, 100)
            order = LeafOrder(policy_class("eviction", self.eviction)(), describe)
        self.now_s = 0.0
        self.memory = KVRadixManager(
            48 // self.block_size,
            self.block_size,
            namespace=lambda request: request.tenant.encode(),
            order=order,
            expiry=Expiry(50.0, lambda: self.now_s),
        )
        self.arrived, self.running, self.waiting = 0, [], []
        self.chunks = {}
        """Tokens that a request was given blocks for and has not computed yet."""
        self.computed = set()
        """Every prefix whose last block was ever full, with its tenant: what the cache may know."""

    @rule(
        documents=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=3),
        tenant=st.sampled_from(TENANTS),
        priority=st.integers(0, 2),
    )
    def arrive(self, documents, tenant, priority):
        prompt = [Run(100 * document, tokens) for document, tokens in documents]
        self.waiting.append(request_of(self.arrived, prompt, tenant, priority))
        self.arrived += 1

    @precondition(lambda self: self.waiting)
    @rule(place=st.integers(0, 5), share=st.sampled_from([1.0, 0.5]))
    def admit(self, place, share):
        request = self.waiting[place % len(self.waiting)]
        cached, shared = self.memory.cached_prefix(request)
        assert cached % self.block_size == 0
        assert cached < request.tokens_to_compute
        for end in range(self.block_size, cached + 1, self.block_size):
            assert (request.tenant, tokens_of(request, end)) in self.computed
        tokens = max(1, round((request.tokens_to_compute - cached) * share))
        if self.memory.blocks_for(cached + tokens) - shared > self.memory.free_blocks:
            return
        self.memory.admit(request, cached, tokens)
        request.computed_tokens = cached
        self.waiting.remove(request)
        self.running.append(request)
        self.chunks[request.number] = tokens

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 5), tokens=st.integers(1, 6))
    def grow(self, place, tokens):
        request = self.running[place % len(self.running)]
        if request.number in self.chunks:
            return
        prefilling = request.tokens_to_compute > 0
        tokens = min(tokens, request.tokens_to_compute) if prefilling else tokens
        blocks = self.memory.blocks_to_grow(request.computed_tokens, tokens)
        if blocks > self.memory.free_blocks:
            return
        if prefilling:
            self.memory.grow(request, tokens)
            self.chunks[request.number] = tokens
        else:
            self.memory.extend(request, blocks)
            request.known_output_tokens += tokens
            self.note_computed(request, tokens)

    @rule()
    def compute(self):
        """All chunks are done; then what they hold is found by whoever says the same."""
        for request in self.running:
            tokens = self.chunks.pop(request.number, 0)
            if tokens:
                self.note_computed(request, tokens)
                self.memory.computed(request)
                twin = request_of(10_000, [*text_of(request)], request.tenant)
                twin.prompt_tokens = request.computed_tokens + 1
                blocks = request.computed_tokens // self.block_size
                assert self.memory.cached_prefix(twin) == (blocks * self.block_size, blocks)
                self.memory._keys.forget(twin)
                assert len(set(self.memory.block_table(request))) == self.memory.blocks_for(request.computed_tokens)

    def note_computed(self, request, tokens):
        request.computed_tokens += tokens
        for end in range(self.block_size, request.computed_tokens + 1, self.block_size):
            self.computed.add((request.tenant, tokens_of(request, end)))

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 5), comes_back=st.booleans())
    def leave(self, place, comes_back):
        request = self.running.pop(place % len(self.running))
        self.memory.release(request, self.chunks.pop(request.number, 0), comes_back)
        if comes_back:
            request.known_output_tokens += 1
            request.computed_tokens = 0
            self.waiting.append(request)

    @precondition(lambda self: any(not request.tokens_to_compute for request in self.running))
    @rule(place=st.integers(0, 5))
    def fork(self, place):
        """A second sequence goes on from where one is, if all full blocks of that are in the tree."""
        done = [request for request in self.running if not request.tokens_to_compute]
        parent = done[place % len(done)]
        full_blocks, partial = divmod(parent.computed_tokens, self.block_size)
        if not self.memory.can_fork(parent):
            return
        said = [*parent.content.prompt, Run(parent.content.output_first, parent.known_output_tokens)]
        child = request_of(self.arrived, said, parent.tenant)
        self.arrived += 1
        child.prompt_tokens = parent.computed_tokens
        free_blocks, ours = self.memory.free_blocks, self.memory.block_table(parent)
        copies = self.memory.fork(parent, child)
        child.computed_tokens = parent.computed_tokens
        own = self.memory.block_table(child)
        assert own[:full_blocks] == ours[:full_blocks]
        assert [tuple(copy) for copy in copies] == ([(ours[-1], own[-1])] if partial else [])
        assert self.memory.free_blocks == free_blocks - (partial > 0)
        self.running.append(child)

    @rule(seconds=st.sampled_from([0.1, 10.0, 60.0]))
    def wait(self, seconds):
        self.now_s += seconds

    def held(self):
        return [(request, request.computed_tokens + self.chunks.get(request.number, 0)) for request in self.running]

    @invariant()
    def books_are_right(self):
        self.memory.check(self.held())

    def teardown(self):
        for request in self.running:
            self.memory.release(request, self.chunks.pop(request.number, 0))
        self.running = []
        self.books_are_right()
        assert self.memory.free_blocks == self.memory.total_blocks


@pytest.mark.parametrize(
    ("eviction", "block_size"), [*((name, 4) for name in policy_names("eviction")), ("lru", 1), ("lfu", 3)]
)
def test_books_and_hits_are_right_under_every_eviction(eviction, block_size):
    machine = type("Service", (Service,), {"eviction": eviction, "block_size": block_size})
    test = machine.TestCase
    test.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
    test("runTest").runTest()


documents = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=3)


class Served:
    """Requests that prefill alone and at once, then decode and leave together with others, with memory for all."""

    def __init__(self, memory):
        self.memory, self.running, self.found = memory, [], []

    def arrive(self, number, prompt, chunk):
        request, memory = request_of(number, prompt), self.memory
        cached, _ = memory.cached_prefix(request)
        self.found.append(cached)
        tokens = min(chunk, request.prompt_tokens - cached)
        memory.admit(request, cached, tokens)
        request.computed_tokens = cached + tokens
        memory.computed(request)
        while request.tokens_to_compute:
            tokens = min(chunk, request.tokens_to_compute)
            memory.grow(request, tokens)
            request.computed_tokens += tokens
            memory.computed(request)
        self.running.append(request)

    def decode(self, place, tokens):
        if self.running:
            request = self.running[place % len(self.running)]
            self.memory.allocate(self.memory.blocks_to_grow(request.computed_tokens, tokens))
            request.known_output_tokens += tokens
            request.computed_tokens += tokens

    def leave(self, place):
        if self.running:
            self.memory.release(self.running.pop(place % len(self.running)))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([1, 3, 4]),
    st.lists(
        st.one_of(
            st.tuples(st.just("arrive"), documents, st.integers(2, 30)),
            st.tuples(st.just("follow"), st.integers(0, 5), documents, st.integers(2, 30)),
            st.tuples(st.just("decode"), st.integers(0, 5), st.integers(1, 9)),
            st.tuples(st.just("leave"), st.integers(0, 5)),
        ),
        max_size=40,
    ),
)
def test_both_indexes_find_the_same_where_nothing_is_given_up_and_no_two_compute_at_once(block_size, actions):
    """The tree never needs more blocks, since it keeps the same contents once."""
    hashed, radix = (
        Served(KVBlockManager(10_000, block_size, prefix_caching=True)),
        Served(KVRadixManager(10_000, block_size)),
    )
    for number, (name, *arguments) in enumerate(actions):
        if name == "follow":
            name, place, said, chunk = "arrive", *arguments
            before = [run for run in ((100 * place, 7), (10**6 * (place + 1), 9)) if place < number]
            arguments = [[*before, *((100 * document, tokens) for document, tokens in said)], chunk]
        elif name == "arrive":
            arguments = [[(100 * document, tokens) for document, tokens in arguments[0]], arguments[1]]
        for service in (hashed, radix):
            if name == "arrive":
                service.arrive(number, [Run(*run) for run in arguments[0]], arguments[1])
            else:
                getattr(service, name)(*arguments)
            service.memory.check([(request, request.computed_tokens) for request in service.running])
        assert hashed.found == radix.found
        assert radix.memory.used_blocks <= hashed.memory.used_blocks


def admitted(memory, request):
    cached, _ = memory.cached_prefix(request)
    memory.admit(request, cached, request.prompt_tokens - cached)
    request.computed_tokens = cached
    return request


def compute(memory, request):
    request.computed_tokens = request.prompt_tokens
    memory.computed(request)


def test_of_two_that_compute_the_same_in_one_step_one_keeps_it():
    memory = KVRadixManager(100, 4)
    one, other = (admitted(memory, request_of(number, [Run(0, 17)])) for number in range(2))
    assert memory.used_blocks == 10
    compute(memory, one)
    assert memory.used_blocks == 10
    compute(memory, other)
    assert memory.used_blocks == 6
    assert memory.block_table(one)[:4] == memory.block_table(other)[:4]
    assert memory.block_table(one)[4] != memory.block_table(other)[4]
    memory.check([(one, 17), (other, 17)])


def test_what_is_planned_is_not_found_until_it_is_computed():
    memory = KVRadixManager(100, 4)
    one = admitted(memory, request_of(0, [Run(0, 17)]))
    assert memory.cached_prefix(request_of(1, [Run(0, 17)])) == (0, 0)
    compute(memory, one)
    assert memory.cached_prefix(request_of(1, [Run(0, 17)])) == (16, 4)
    memory.release(one)
    assert memory.cached_prefix(request_of(1, [Run(0, 17)])) == (16, 0)


@pytest.mark.parametrize(("comes_back", "found"), [(False, 24), (True, 16)])
def test_what_was_generated_enters_only_at_the_end(comes_back, found):
    memory = KVRadixManager(100, 4)
    one = admitted(memory, request_of(0, [Run(0, 17)]))
    compute(memory, one)
    memory.allocate(2)
    one.computed_tokens, one.known_output_tokens = 17 + 8, 9
    memory.release(one, 0, comes_back)
    follow_up = request_of(1, [Run(0, 17), Run(one.content.output_first, 9), Run(900, 5)])
    assert memory.cached_prefix(follow_up) == (found, 0)


def test_a_whole_leaf_is_given_up_and_a_block_of_it_is_enough():
    memory = KVRadixManager(6, 4)
    one = admitted(memory, request_of(0, [Run(0, 20)]))
    compute(memory, one)
    memory.release(one)
    two = admitted(memory, request_of(1, [Run(500, 8)]))
    assert memory.cached_prefix(request_of(2, [Run(0, 20)])) == (0, 0)
    assert memory.free_blocks == 4
    memory.check([(two, 8)])
