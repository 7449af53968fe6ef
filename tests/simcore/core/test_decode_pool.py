import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.horizon import FOREVER
from simcore.core.decode_pool import DecodePool
from simcore.core.windowed_context import WindowedContext


class NaivePool:
    """The same pool with every member written out: the tokens that each holds."""

    def __init__(self, block_size):
        self.block_size = block_size
        self.contexts = []

    def blocks(self, contexts):
        return sum(-(-tokens // self.block_size) for tokens in contexts)

    def needed(self, steps, after=0):
        start = [tokens + after for tokens in self.contexts]
        return self.blocks(tokens + steps for tokens in start) - self.blocks(start)

    def steps_within(self, blocks, limit, after=0):
        return max(steps for steps in range(limit + 1) if self.needed(steps, after) <= blocks)

    def windowed(self, window):
        return sum(min(tokens, window) for tokens in self.contexts)

    def steps_to_crossing(self, window):
        return min((window - tokens for tokens in self.contexts if tokens < window), default=FOREVER)


ACTIONS = st.one_of(
    st.tuples(st.just("join"), st.integers(1, 70)),
    st.tuples(st.just("leave"), st.integers(0, 1000)),
    st.tuples(st.just("stall"), st.integers(0, 1000)),
    st.tuples(st.just("advance"), st.integers(1, 40)),
)


@settings(deadline=None, derandomize=True)
@given(
    block_size=st.integers(1, 20),
    windows=st.lists(st.integers(1, 50), max_size=2, unique=True),
    actions=st.lists(ACTIONS, max_size=40),
)
def test_counts_equal_those_over_single_members(block_size, windows, actions):
    pool, naive, origins = DecodePool(block_size, tuple(windows)), NaivePool(block_size), []
    for action, amount in actions:
        if action == "join":
            origins.append(pool.join(amount))
            naive.contexts.append(amount)
        elif action == "leave" and origins:
            index = amount % len(origins)
            assert pool.leave(origins.pop(index)) == naive.contexts.pop(index)
        elif action == "stall" and origins:
            index = amount % len(origins)
            held = pool.leave(origins[index])
            pool.advance(1)
            origins[index] = pool.join(held)
            naive.contexts = [tokens + (place != index) for place, tokens in enumerate(naive.contexts)]
        elif action == "advance":
            steps = min([amount, *(window.steps_to_crossing(pool.steps) for window in pool.windows)])
            pool.advance(steps)
            naive.contexts = [tokens + steps for tokens in naive.contexts]

        assert [pool.context_of(origin) for origin in origins] == naive.contexts
        assert (pool.size, pool.context_tokens) == (len(naive.contexts), sum(naive.contexts))
        assert [pool.needs_block(origin) for origin in origins] == [
            tokens % block_size == 0 for tokens in naive.contexts
        ]
        assert pool.blocks_due() == naive.needed(1)
        for window in pool.windows:
            assert window.tokens == naive.windowed(window.window_tokens)
            assert window.growing == sum(tokens < window.window_tokens for tokens in naive.contexts)
            # It may stop at a crossing of a member that has left, never beyond one that is there.
            assert 1 <= window.steps_to_crossing(pool.steps) <= naive.steps_to_crossing(window.window_tokens)


@settings(deadline=None, derandomize=True)
@given(
    block_size=st.integers(1, 12),
    contexts=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    before=st.integers(0, 15),
    after=st.integers(0, 1),
    steps=st.integers(0, 50),
    blocks=st.integers(0, 60),
)
def test_blocks_over_many_steps(block_size, contexts, before, after, steps, blocks):
    pool, naive = DecodePool(block_size), NaivePool(block_size)
    pool.advance(before)
    for tokens in contexts:
        pool.join(tokens)
    naive.contexts = contexts
    assert pool.blocks_needed(steps, after) == naive.needed(steps, after)
    assert pool.steps_within(blocks, steps, after) == naive.steps_within(blocks, steps, after)


def test_a_window_grows_until_it_is_full():
    window = WindowedContext(5)
    window.join(3, origin=-3)
    window.join(9, origin=-9)
    assert (window.tokens, window.growing, window.steps_to_crossing(0)) == (8, 1, 2)
    window.advance(2, now_step=2)
    assert (window.tokens, window.growing, window.steps_to_crossing(2)) == (10, 0, FOREVER)
    window.advance(100, now_step=102)
    window.leave(105, origin=-3)
    assert window.tokens == 5


@pytest.mark.parametrize("context_tokens", [5, 6])
def test_a_member_that_comes_with_a_full_window_never_crosses(context_tokens):
    window = WindowedContext(5)
    window.join(context_tokens, origin=-context_tokens)
    assert (window.tokens, window.growing, window.steps_to_crossing(0)) == (5, 0, FOREVER)
