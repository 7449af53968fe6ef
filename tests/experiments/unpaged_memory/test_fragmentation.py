"""What slots are used for, by hand on small memories, and on ShareGPT lengths beside the published shares."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.unpaged_memory.address_space import Buddy, FirstFit
from experiments.unpaged_memory.contiguous import (
    ContiguousKv,
    Fragmentation,
    PagedKv,
    reserve_exact,
    reserve_longest,
    reserve_power_of_two,
)
from experiments.unpaged_memory.fragmentation import replay_memory_use
from tools.memory_cases import PUBLISHED, SHORT_PROMPT, figure_2, schemes


@pytest.mark.parametrize(
    ("reservation", "expected"),
    [(reserve_longest(2048), 2048), (reserve_power_of_two, 10 + 32), (reserve_exact, 10 + 25)],
)
def test_what_a_request_asks_for(reservation, expected):
    # The paper's example: an output of 25 tokens is given 32 slots.
    assert reservation(10, 25) == expected


def test_an_output_that_is_a_power_of_two_is_not_rounded():
    assert [reserve_power_of_two(0, output) for output in (1, 2, 3, 4, 5, 32, 33)] == [1, 2, 4, 4, 8, 32, 64]


def test_shares_of_a_contiguous_memory():
    memory = ContiguousKv(Buddy(64), reserve_power_of_two)
    assert memory.admit(7, prompt_tokens=10, total_tokens=15)  # asks for 18, gets 32
    assert memory.grow(7)
    assert memory.fragmentation() == Fragmentation(token_states=11, reserved=4, internal=3, external=46)
    assert not memory.admit(8, prompt_tokens=30, total_tokens=32 + 1)
    memory.release(7)
    assert memory.fragmentation() == Fragmentation(0, 0, 0, 64)


def test_shares_of_a_paged_memory():
    memory = PagedKv(35, 16)  # two blocks, three slots are no whole block
    assert memory.admit(7, prompt_tokens=10, total_tokens=12)
    assert memory.fragmentation() == Fragmentation(token_states=10, reserved=2, internal=4, external=19)
    assert memory.admit(8, prompt_tokens=16, total_tokens=40)
    assert not memory.grow(8)
    assert memory.fragmentation() == Fragmentation(26, 2, 4, 3)
    memory.release(7)
    assert memory.grow(8)
    assert memory.fragmentation() == Fragmentation(17, 15, 0, 3)


def test_a_replay_by_hand():
    # Room for one request of 4 slots at a time; the second waits while the first runs its two steps.
    memory = ContiguousKv(FirstFit(5), reserve_exact)
    use = replay_memory_use([(0.0, 2, 2), (0.0, 2, 2), (100.0, 1, 1)], memory, lambda tokens: 10.0)
    # The steps at 0 and 10 hold 2 and 3 tokens, and those of the second alone do not count: nobody waits.
    assert (use.token_states, use.reserved, use.internal, use.external) == pytest.approx((0.5, 0.3, 0.0, 0.2))
    assert (use.running_requests, use.preemptions) == (1, 0)


def test_a_replay_with_preemption_by_hand():
    # Two requests of a block each need a second one, and there are three: the later one gives way.
    memory = PagedKv(6, 2)
    use = replay_memory_use([(0.0, 2, 3), (0.0, 2, 3), (1000.0, 1, 1)], memory, lambda tokens: 10.0)
    assert use.preemptions == 1


def test_memory_that_nobody_waits_for_is_not_measured():
    with pytest.raises(ValueError, match="no request ever waited"):
        replay_memory_use([(0.0, 2, 2)], PagedKv(64, 16), lambda tokens: 1.0)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=4, max_size=30),
    space=st.sampled_from([FirstFit, Buddy]),
)
def test_shares_add_up_and_nothing_is_left_behind(lengths, space):
    # All come at once, one much later so that all others are served.
    requests = [(0.0, prompt, output) for prompt, output in lengths] * 3 + [(1e12, 1, 1)]
    for memory in schemes(3000, space).values():
        try:
            use = replay_memory_use(requests, memory, lambda tokens: 1.0 + tokens)
        except ValueError:
            continue
        parts = (use.token_states, use.reserved, use.internal, use.external)
        assert sum(parts) == pytest.approx(1)
        assert min(parts) >= 0
        assert memory.fragmentation() == Fragmentation(0, 0, 0, 3000)


def test_paged_memory_holds_tokens_and_the_others_follow_in_the_published_order(shared_data):
    shares = {name: use.token_states for name, use in figure_2(shared_data, SHORT_PROMPT, 600).items()}
    published = {name: bar["token_states"] for name, bar in PUBLISHED["paged_attention_figure_2"]["percent"].items()}
    assert shares["paged"] > 0.95
    assert sorted(shares, key=shares.__getitem__) == sorted(published, key=published.__getitem__) == list(published)
    for name, share in shares.items():
        assert 100 * share == pytest.approx(published[name], abs=4)


def test_paged_memory_holds_tokens_of_long_prompts_too(shared_data):
    shares = {name: use.token_states for name, use in figure_2(shared_data, 2048, 600, FirstFit).items()}
    assert shares["paged"] > 0.95
    assert list(shares) == sorted(shares, key=shares.__getitem__)


def test_published_shares_add_up():
    for bar in PUBLISHED["paged_attention_figure_2"]["percent"].values():
        assert sum(bar.values()) == pytest.approx(100, abs=0.15)
