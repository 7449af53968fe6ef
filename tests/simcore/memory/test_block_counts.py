"""Counting blocks against keeping each of them: the same, as long as no two requests say the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.request import Request
from simcore.memory import KVBlockCounter, KVBlockManager


@pytest.mark.parametrize("kind", [KVBlockCounter, KVBlockManager])
def test_memory_that_is_not_there_cannot_be_taken(kind):
    memory = kind(4, 16)
    memory.allocate(3)
    with pytest.raises(AssertionError, match="2 blocks asked for, 1 free"):
        memory.allocate(2)


def test_more_than_was_taken_cannot_be_given_back():
    memory = KVBlockCounter(4, 16)
    memory.allocate(3)
    with pytest.raises(AssertionError, match="5 of 4 blocks free"):
        memory.release(Request(0, 0, 64, computed_tokens=64))


@pytest.mark.parametrize("block_size", [1, 3, 16])
def test_blocks_to_grow_is_the_difference_of_what_is_held(block_size):
    memory = KVBlockCounter(1000, block_size)
    for held in range(40):
        for new in range(1, 40):
            assert memory.blocks_to_grow(held, new) == memory.blocks_for(held + new) - memory.blocks_for(held)


class Sequence:
    """Requests that are admitted, grow, leave and come back, as a scheduler would let them."""

    def __init__(self, kind, blocks, block_size):
        self.memory = kind(blocks, block_size, prefix_caching=True)
        self.requests = {}
        self.running, self.waiting = [], []

    def arrive(self, prompt):
        number = len(self.requests)
        self.requests[number] = Request(number, 0, prompt)
        self.waiting.append(number)

    def admit(self, place, share):
        if not self.waiting:
            return None
        number = self.waiting[place % len(self.waiting)]
        request, memory = self.requests[number], self.memory
        cached, shared = memory.cached_prefix(request)
        tokens = max(1, round((request.tokens_to_compute - cached) * share))
        if memory.blocks_for(cached + tokens) - shared > memory.free_blocks:
            return cached
        memory.admit(request, cached, tokens)
        request.computed_tokens = cached + tokens
        self.waiting.remove(number)
        self.running.append(number)
        return cached

    def grow(self, place, tokens):
        """Compute more of the prompt, or generate."""
        if not self.running:
            return
        request, memory = self.requests[self.running[place % len(self.running)]], self.memory
        if request.tokens_to_compute:
            tokens = min(tokens, request.tokens_to_compute)
            if memory.blocks_to_grow(request.computed_tokens, tokens) > memory.free_blocks:
                return
            memory.grow(request, tokens)
        else:
            blocks = memory.blocks_to_grow(request.computed_tokens, tokens)
            if blocks > memory.free_blocks:
                return
            memory.allocate(blocks)
            request.known_output_tokens += tokens
        request.computed_tokens += tokens

    def leave(self, place, granted, comes_back):
        if not self.running:
            return
        number = self.running.pop(place % len(self.running))
        request, memory = self.requests[number], self.memory
        granted = min(granted, request.tokens_to_compute)
        if granted and memory.blocks_to_grow(request.computed_tokens, granted) <= memory.free_blocks:
            memory.grow(request, granted)
        else:
            granted = 0
        if not request.tokens_to_compute:
            request.known_output_tokens += 1  # the token that was sampled last and is not computed yet
        memory.release(request, granted, comes_back)
        if comes_back:
            request.computed_tokens = 0
            self.waiting.append(number)

    def check(self):
        self.memory.check([(self.requests[number], self.requests[number].computed_tokens) for number in self.running])


places = st.integers(0, 5)
actions = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, 40)),
    st.tuples(st.just("admit"), places, st.sampled_from([1.0, 0.5])),
    st.tuples(st.just("grow"), places, st.integers(1, 20)),
    st.tuples(st.just("leave"), places, st.integers(0, 20), st.booleans()),
)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 24), st.sampled_from([1, 2, 4, 16]), st.lists(actions, max_size=60))
def test_counts_equal_single_blocks(blocks, block_size, sequence):
    counted, kept = Sequence(KVBlockCounter, blocks, block_size), Sequence(KVBlockManager, blocks, block_size)
    for name, *arguments in sequence:
        assert getattr(counted, name)(*arguments) == getattr(kept, name)(*arguments)
        assert counted.memory.free_blocks == kept.memory.free_blocks
        assert counted.memory.peak_used_blocks == kept.memory.peak_used_blocks
        for number in counted.waiting:
            pair = [side.memory.cached_prefix(side.requests[number])[0] for side in (counted, kept)]
            assert pair[0] == pair[1]
        counted.check()
        kept.check()
