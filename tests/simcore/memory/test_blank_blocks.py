"""Blank blocks are a stack, whatever of it has never been written down."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from simcore.memory.blank_blocks import BlankBlocks
from simcore.memory.block_pool import BlockPool


@given(st.integers(0, 30), st.lists(st.integers(-10, 10), max_size=30))
def test_it_is_the_stack_of_all_blocks(total, moves):
    blank, stack, held = BlankBlocks(total), list(range(total - 1, -1, -1)), []
    for move in moves:
        if move >= 0:
            taken = blank.take(move)
            assert taken == [stack.pop() for _ in range(min(move, len(stack)))]
            held += taken
        else:
            given_back, held = held[:-move], held[-move:]
            blank.given_back += given_back
            stack += given_back
        assert sorted(blank) == sorted(stack)
        assert len(blank) == len(stack)


def test_blocks_that_nobody_took_cost_nothing():
    tracemalloc.start()
    pools = [BlockPool(1_400_000) for _ in range(1000)]
    taken = pools[0].take(10)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken == list(range(10))
    assert size < 2_000_000
