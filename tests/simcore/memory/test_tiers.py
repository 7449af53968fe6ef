"""Tiers below GPU memory: what they hold, what they hand down, and when what is loaded is there."""

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from simcore.memory.link import KINDS, Link
from simcore.memory.tier import Tier
from simcore.memory.tiers import TierChain
from simcore.service.clock import Clock

BLOCK_BYTES = 100


def chain_of(*capacities, cpu=True, prefetches=False, to_gpu=1e9, read=1e9):
    """Tiers of so many blocks, one nanosecond a byte over every link."""
    clock = Clock()
    tiers = [
        Tier(f"tier {place}", blocks)
        if cpu and place == 0
        else Tier(f"tier {place}", blocks, Link(f"read {place}", read), Link(f"write {place}", 1e9))
        for place, blocks in enumerate(capacities)
    ]
    links = Link("to GPU", to_gpu), Link("from GPU", 1e9)
    chain = TierChain(tiers, *links, BLOCK_BYTES, clock, prefetches)
    return clock, chain, links


def at(clock, time_ns):
    """Let time pass; what is due at that very nanosecond has happened."""
    clock.run(until=clock.timeout(time_ns - clock.now_ns))


def held(chain, clock):
    """The keys that can be found in each tier."""
    return [{key for key in range(100) if tier.holds(key, clock.now_ns)} for tier in chain.tiers]


def test_a_block_is_in_the_tier_when_its_write_ends():
    clock, chain, _ = chain_of(10)
    chain.write([1, 2], 0)
    at(clock, 199)
    assert chain.find([1, 2]) == []
    at(clock, 200)
    assert chain.find([1, 2, 3]) == [0, 0]


def test_a_prefix_is_found_up_to_the_first_block_that_is_nowhere():
    clock, chain, _ = chain_of(10)
    chain.write([1, 2, 4], 0)
    at(clock, 1000)
    assert chain.find([1, 2, 3, 4]) == [0, 0]


def test_what_is_there_is_not_written_again():
    clock, chain, (_, from_gpu) = chain_of(10)
    chain.write([1, 2], 0)
    chain.write([1, 2, 3], 0)
    at(clock, 1000)
    assert [transfer.size_bytes for transfer in from_gpu.transfers] == [200, 100]


def test_the_head_of_a_prefix_outlives_its_tail_and_what_goes_is_handed_down():
    clock, chain, _ = chain_of(3, 10)
    chain.write([1, 2, 3], 0)
    at(clock, 1000)
    chain.write([7, 8], 0)
    at(clock, 2000)
    assert held(chain, clock) == [{1, 7, 8}, {2, 3}]
    assert chain.find([1, 2, 3]) == [0, 1, 1]


def test_what_the_last_tier_evicts_is_gone():
    clock, chain, _ = chain_of(1, 1)
    for key in (1, 2, 3):
        chain.write([key], 0)
        at(clock, key * 1000)
    assert held(chain, clock) == [{3}, {2}]


def test_a_tier_full_of_what_is_on_its_way_takes_nothing_more():
    clock, chain, _ = chain_of(2)
    chain.write([1, 2], 0)
    chain.write([3], 0)
    at(clock, 1000)
    assert held(chain, clock) == [{1, 2}]


def test_a_load_from_below_crosses_both_links_and_stays_in_cpu_memory():
    clock, chain, (to_gpu, _) = chain_of(2, 10, to_gpu=0.5e9)
    chain.write([1, 2], 0)
    at(clock, 1000)
    chain.write([7, 8], 0)  # hands 1 and 2 down
    at(clock, 2000)
    assert held(chain, clock) == [{7, 8}, {1, 2}]
    done = []
    route = chain.route([1, 2])
    chain.load(route, lambda: done.append(clock.now_ns))
    at(clock, 5000)
    assert done == [2000 + 200 + 400]
    assert held(chain, clock)[0] == {1, 2}
    assert [transfer[1:3] for transfer in to_gpu.transfers] == [(2200, 2600)]


def test_what_is_near_is_sent_on_while_the_rest_is_read():
    clock, chain, (to_gpu, _) = chain_of(3, 10)
    chain.write([1, 2, 3], 0)
    at(clock, 1000)
    chain.write([7, 8], 0)
    at(clock, 2000)
    done = []
    chain.load(chain.route([1, 2, 3]), lambda: done.append(clock.now_ns))
    at(clock, 5000)
    assert [transfer[1:3] for transfer in to_gpu.transfers] == [(2000, 2100), (2200, 2400)]
    assert done == [2400]


def test_loads_wait_for_each_other():
    clock, chain, _ = chain_of(9)
    chain.write([1, 2, 3, 4], 0)
    at(clock, 1000)
    done = []
    for keys in ([1, 2], [3, 4]):
        chain.load(chain.route(keys), lambda: done.append(clock.now_ns))
    at(clock, 2000)
    assert done == [1200, 1400]


def test_only_what_is_faster_is_loaded():
    """Two blocks are near and two far; near ones take 100 ns each, far ones 1000 ns more."""
    clock, chain, _ = chain_of(2, 10, read=0.2e9)
    chain.write([1, 2, 3, 4], 0)  # there is room for two
    at(clock, 1000)
    chain.write([1, 2, 3, 4], 2)  # the others take their places
    at(clock, 3000)
    chain.write([1, 2], 0)
    at(clock, 5000)
    assert chain.find([1, 2, 3, 4]) == [0, 0, 1, 1]
    assert len(chain.route([1, 2, 3, 4], lambda blocks: 1201).keys) == 4
    assert len(chain.route([1, 2, 3, 4], lambda blocks: 1200).keys) == 2
    assert len(chain.route([1, 2, 3, 4], lambda blocks: 201).keys) == 2
    assert chain.route([1, 2, 3, 4], lambda blocks: 200) is None


def test_a_prefetch_brings_blocks_up_and_a_load_waits_for_them():
    clock, chain, _ = chain_of(2, 10, prefetches=True)
    chain.write([1, 2], 0)
    at(clock, 1000)
    chain.write([7, 8], 0)
    at(clock, 2000)
    chain.prefetch([1, 2])
    at(clock, 2150)
    done = []
    route = chain.route([1, 2])
    assert (list(route.levels), route.reads) == ([1, 1], [])
    chain.load(route, lambda: done.append(clock.now_ns))
    at(clock, 9000)
    assert done == [2400]


def test_without_a_tier_in_cpu_memory_blocks_pass_through_it():
    clock, chain, (to_gpu, from_gpu) = chain_of(10, cpu=False)
    chain.write([1, 2], 0)
    at(clock, 399)
    assert held(chain, clock) == [set()]
    at(clock, 400)
    assert held(chain, clock) == [{1, 2}]
    done = []
    chain.load(chain.route([1, 2]), lambda: done.append(clock.now_ns))
    at(clock, 5000)
    assert done == [800]
    assert [KINDS[transfer.kind] for link in (to_gpu, from_gpu) for transfer in link.transfers] == ["load", "write"]


class Chain(RuleBasedStateMachine):
    """Prefixes are written, loaded and prefetched at any time; every block found was written, and loads end."""

    cpu = True

    def __init__(self):
        super().__init__()
        self.clock, self.chain, self.host_links = chain_of(3, 5, 4, cpu=self.cpu, prefetches=True)
        self.written, self.loads, self.done = set(), 0, []

    prefixes = st.builds(
        lambda start, blocks: list(range(start, start + blocks)), st.integers(0, 12), st.integers(1, 5)
    )

    @rule(prefix=prefixes, older=st.integers(0, 2))
    def write(self, prefix, older):
        older = min(older, len(prefix) - 1)
        self.chain.write(prefix, older)
        self.written |= set(prefix[older:])

    @rule(prefix=prefixes, worth_ns=st.sampled_from([None, 150, 700, 2000]))
    def load(self, prefix, worth_ns):
        route = self.chain.route(prefix, None if worth_ns is None else lambda blocks: worth_ns)
        if route is None:
            return
        assert set(route.keys) <= self.written
        assert list(route.keys) == prefix[: len(route.keys)]
        assert sum(blocks for _, blocks in route.parts) == len(route.keys)
        self.loads += 1
        self.chain.load(route, lambda: self.done.append(self.clock.now_ns))

    @rule(prefix=prefixes)
    def prefetch(self, prefix):
        self.chain.prefetch(prefix)

    @rule(time_ns=st.sampled_from([1, 100, 250, 3000]))
    def wait(self, time_ns):
        at(self.clock, self.clock.now_ns + time_ns)

    @invariant()
    def no_tier_is_overfull_and_none_holds_what_was_never_written(self):
        self.chain.check()
        for found, tier in zip(held(self.chain, self.clock), self.chain.tiers, strict=True):
            assert found <= self.written
            assert len(found) <= len(tier) <= tier.capacity_blocks

    @invariant()
    def every_block_crossed_the_links_whole(self):
        links = [*self.host_links, *(link for tier in self.chain.tiers for link in (tier.read, tier.write) if link)]
        for link in links:
            transfers = list(link.transfers)
            assert all(transfer.size_bytes % BLOCK_BYTES == 0 for transfer in transfers)
            for earlier, later in pairwise(transfers):
                assert earlier.end_ns <= later.start_ns

    def teardown(self):
        at(self.clock, self.clock.now_ns + 10**6)
        assert len(self.done) == self.loads
        for found, tier in zip(held(self.chain, self.clock), self.chain.tiers, strict=True):
            assert len(found) == len(tier), "a place is kept for a block that never came"


@pytest.mark.parametrize("cpu", [True, False])
def test_any_sequence(cpu):
    test = type("Chain", (Chain,), {"cpu": cpu}).TestCase
    test.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
    test("runTest").runTest()
