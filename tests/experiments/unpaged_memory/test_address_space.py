"""No two pieces overlap, nothing leaks, and what was given back can be taken again, in any order of events."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from experiments.unpaged_memory.address_space import Buddy, FirstFit


def test_first_fit_takes_the_lowest_gap_and_joins_neighbours():
    space = FirstFit(100)
    assert [space.allocate(size) for size in (30, 20, 40)] == [0, 30, 50]
    assert space.allocate(20) is None  # ten are left
    space.release(0)
    space.release(50)
    assert space.free_size() == 80
    assert space.allocate(50) == 50
    assert space.allocate(31) is None  # 30 free below the piece that is left, none beside it
    space.release(30)
    assert space.allocate(50) == 0


def test_buddies_are_powers_of_two_and_join_again():
    space = Buddy(64)
    assert [space.allocate(size) for size in (9, 16, 20)] == [0, 16, 32]
    assert space.free_size() == 0
    assert space.allocate(1) is None
    space.release(0)
    assert space.allocate(17) is None
    space.release(16)
    assert space.allocate(17) == 0


def test_a_range_that_is_no_power_of_two_is_used_whole():
    space = Buddy(14_016)
    taken = [space.allocate(2048) for _ in range(6)]
    assert None not in taken
    assert space.allocate(2048) is None
    assert space.free_size() == 14_016 - 6 * 2048
    assert space.allocate(1024) == 12_288


@pytest.mark.parametrize("kind", [FirstFit, Buddy])
def test_what_was_not_taken_cannot_be_given_back(kind):
    with pytest.raises(KeyError):
        kind(64).release(0)


class _Pieces(RuleBasedStateMachine):
    """A space beside a list of what is taken of it."""

    kind: type
    pieces = Bundle("pieces")

    @initialize(size=st.integers(1, 400))
    def begin(self, size):
        self.space = self.kind(size)
        self.taken: dict[int, int] = {}

    @rule(target=pieces, size=st.integers(1, 90))
    def allocate(self, size):
        address = self.space.allocate(size)
        if address is None:
            assert self.longest_gap() < self.length(size)
            return multiple()
        self.taken[address] = self.length(size)
        return address

    @rule(address=consumes(pieces))
    def release(self, address):
        del self.taken[address]
        self.space.release(address)

    def length(self, size):
        return size

    def longest_gap(self):
        edges = [0, *(edge for start in sorted(self.taken) for edge in (start, start + self.taken[start]))]
        return max(end - start for start, end in zip(edges[::2], [*edges[1::2], self.space.size], strict=True))

    @invariant()
    def nothing_overlaps_or_leaks(self):
        if not hasattr(self, "space"):
            return
        end = 0
        for address in sorted(self.taken):
            assert address >= end
            end = address + self.taken[address]
        assert end <= self.space.size
        assert self.space.free_size() == self.space.size - sum(self.taken.values())

    def teardown(self):
        if not hasattr(self, "space"):
            return
        for address in list(self.taken):
            self.space.release(address)
        assert self.space.free_size() == self.space.size
        if self.longest_whole():
            assert self.space.allocate(self.longest_whole()) is not None

    def longest_whole(self):
        return self.space.size


class _FirstFitPieces(_Pieces):
    kind = FirstFit


class _BuddyPieces(_Pieces):
    kind = Buddy

    def length(self, size):
        return 1 << (size - 1).bit_length()

    def longest_gap(self):
        """Longest aligned power of two that is free; pieces are aligned to those that the range began as."""
        longest, start = 0, 0
        for order in reversed(range(self.space.size.bit_length())):
            if self.space.size >> order & 1:
                longest = max(longest, self.free_within(start, 1 << order))
                start += 1 << order
        return longest

    def free_within(self, start, length):
        inside = [piece for piece in self.taken if start <= piece < start + length]
        if not inside:
            return length
        if length == 1 or self.taken.get(start) == length:
            return 0
        half = length // 2
        return max(self.free_within(start, half), self.free_within(start + half, half))

    def longest_whole(self):
        return 1 << (self.space.size.bit_length() - 1)


TestFirstFitPieces = _FirstFitPieces.TestCase
TestBuddyPieces = _BuddyPieces.TestCase
TestFirstFitPieces.settings = TestBuddyPieces.settings = settings(max_examples=60, stateful_step_count=40)
