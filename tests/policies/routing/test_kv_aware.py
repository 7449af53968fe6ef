"""Routing by an index of cached blocks: what it knows, and what a choice weighs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.routing.kv_aware import KvAware
from tests.policies.views import FakeReplica, FakeRequest


@given(
    held=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=4),
    removed=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=8),
    blocks=st.integers(0, 8),
)
def test_the_index_has_the_first_blocks_that_each_replica_has(held, removed, blocks):
    policy = KvAware()
    for replica, keys in enumerate(held):
        for key in sorted(keys):
            policy.stored(replica, key)
    for replica, key in removed:
        if replica < len(held) and key in held[replica]:
            held[replica].remove(key)
            policy.removed(replica, key)
    expected = {}
    for replica, keys in enumerate(held):
        first = next((place for place in range(blocks) if place not in keys), blocks)
        if first:
            expected[replica] = first
    assert dict(policy.cached_blocks(range(blocks))) == expected


def choice(policy, request, replicas=3):
    return policy.choose(request, [FakeReplica() for _ in range(replicas)])


def test_a_request_goes_where_most_of_its_prompt_is():
    policy = KvAware()
    for key in range(4):
        policy.stored(1, key)
    policy.stored(2, 0)
    assert choice(policy, FakeRequest(keys=list(range(8)), prompt_tokens=128)) == 1


@pytest.mark.parametrize(("open_tokens", "expected"), [(50, 1), (70, 0)])
def test_a_cached_half_is_worth_as_many_tokens_of_load(open_tokens, expected):
    policy = KvAware()
    request = FakeRequest(keys=list(range(8)), prompt_tokens=128)
    choice(policy, request)
    policy.sent(FakeRequest(number=1, prompt_tokens=open_tokens), 1)
    for key in range(4):
        policy.stored(1, key)
    assert choice(policy, request, replicas=3) == expected


def test_an_index_that_knows_of_nothing_counts_tokens_alone():
    policy = KvAware()
    sent = [FakeRequest(number, prompt_tokens=100 - number, keys=[number]) for number in range(6)]
    chosen = []
    for request in sent:
        chosen.append(choice(policy, request))
        policy.sent(request, chosen[-1])
    assert chosen == [0, 1, 2, 2, 1, 0]


@pytest.mark.parametrize("parameter", ["overlap_weight", "delay_s"])
def test_parameters_below_zero_are_refused(parameter):
    with pytest.raises(ValueError, match=parameter):
        KvAware(**{parameter: -1.0})
