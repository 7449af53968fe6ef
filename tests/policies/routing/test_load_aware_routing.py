"""Routing by what replicas have to do: the books of loads, and the policies that look at them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.registry import built_in_names, policy_class
from policies.routing.least_requests import LeastRequests
from policies.routing.least_tokens import LeastTokens
from policies.routing.loads import Loads
from policies.routing.power_of_two import PowerOfTwo
from policies.routing.prefix_affinity import PrefixAffinity
from policies.routing.random import Random
from policies.routing.session_sticky import SessionSticky
from policies.routing.weighted import Weighted
from tests.policies.views import FakeReplica, FakeRequest


def send(policy, request, replicas):
    """Have a request routed as a router does."""
    chosen = policy.choose(request, replicas)
    if policy.follows_requests:
        policy.sent(request, chosen)
    return chosen


def replicas(count):
    return [FakeReplica() for _ in range(count)]


@given(
    count=st.integers(1, 5),
    changes=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9), st.booleans()), max_size=200),
)
def test_the_least_load_is_the_one_that_a_walk_over_all_finds(count, changes):
    loads, grown_at = Loads(count), [each - count for each in range(count)]
    for now, (replica, amount, grows) in enumerate(changes):
        replica %= count
        if grows:
            loads.grow(replica, amount)
            grown_at[replica] = now
        else:
            loads.shrink(replica, min(amount, loads.of[replica]))
        assert loads.least == min(range(count), key=lambda each: (loads.of[each], grown_at[each]))
        assert loads.total == sum(loads.of)


@pytest.mark.parametrize("name", built_in_names("routing"))
def test_one_replica_gets_everything(name):
    policy = policy_class("routing", name)()
    assert [send(policy, FakeRequest(number, session=number // 3), replicas(1)) for number in range(9)] == [0] * 9


@pytest.mark.parametrize("name", built_in_names("routing"))
def test_every_replica_gets_something(name):
    policy = policy_class("routing", name)()
    assert {send(policy, FakeRequest(number, session=number), replicas(4)) for number in range(100)} == {0, 1, 2, 3}


def test_least_requests_goes_where_requests_have_ended():
    policy, four = LeastRequests(), replicas(4)
    assert [send(policy, FakeRequest(number), four) for number in range(6)] == [0, 1, 2, 3, 0, 1]
    policy.ended(FakeRequest(3), 3)
    assert [send(policy, FakeRequest(number), four) for number in range(3)] == [3, 2, 3]


def test_least_tokens_counts_prompts():
    policy, two = LeastTokens(), replicas(2)
    prompts = (1000, 10, 20, 30, 2000, 5)
    assert [send(policy, FakeRequest(prompt_tokens=tokens), two) for tokens in prompts] == [0, 1, 1, 1, 1, 0]
    policy.ended(FakeRequest(prompt_tokens=2000), 1)
    assert send(policy, FakeRequest(), two) == 1


def test_power_of_two_takes_the_better_of_the_two_drawn():
    busy = [FakeReplica(waiting_requests=9), FakeReplica(running_requests=9), FakeReplica(), FakeReplica(0, 9)]
    chosen = [PowerOfTwo(seed=3).choose(FakeRequest(number), busy) for number in range(4000)]
    assert chosen.count(2) == pytest.approx(2000, rel=0.1), "it is among the two in half of all draws"


def test_random_draws_evenly_and_by_its_seed():
    four = replicas(4)
    chosen = [Random(seed=1).choose(FakeRequest(number), four) for number in range(8000)]
    assert all(chosen.count(each) == pytest.approx(2000, rel=0.1) for each in range(4))
    assert chosen != [Random(seed=2).choose(FakeRequest(number), four) for number in range(8000)]


def test_weights_are_kept_at_every_moment():
    policy, three = Weighted(weights=(1.0, 2.0, 5.0)), replicas(3)
    chosen = [policy.choose(FakeRequest(), three) for _ in range(80)]
    for end in range(1, 81):
        for replica, weight in enumerate((1, 2, 5)):
            assert abs(chosen[:end].count(replica) - end * weight / 8) < 2
    assert [chosen.count(each) for each in range(3)] == [10, 20, 50]


def test_weights_must_be_one_for_each_replica():
    Weighted(weights=(1.0, 2.0)).check_replicas(2)
    Weighted().check_replicas(7)
    with pytest.raises(ValueError, match="weights has 2 numbers, expected one for each of 3 replicas"):
        Weighted(weights=(1.0, 2.0)).check_replicas(3)
    with pytest.raises(ValueError, match=r"weights.1 is 0.0, expected a number from 1e-06"):
        Weighted(weights=(1.0, 0.0))


def test_a_session_stays_where_it_began():
    policy, three = SessionSticky(most_sessions=2), replicas(3)
    sessions = (7, 8, 7, 7, 8)
    assert [send(policy, FakeRequest(session=session), three) for session in sessions] == [0, 1, 0, 0, 1]
    assert send(policy, FakeRequest(), three) == 2, "of no session: where the fewest are"
    assert send(policy, FakeRequest(session=9), three) == 2
    assert send(policy, FakeRequest(session=7), three) == 1, "forgotten, as two were used after it"


def text(*words):
    """A prompt whose block keys stand for whole prefixes, as real ones do."""
    return FakeRequest(keys=[hash(words[: end + 1]) for end in range(len(words))])


def test_the_longest_known_prefix_decides():
    policy, three = PrefixAffinity(load_cap=100.0), replicas(3)
    assert send(policy, text(1, 2, 3), three) == 0
    assert send(policy, text(5, 6), three) == 1
    assert send(policy, text(1, 2, 3, 4), three) == 0
    assert send(policy, text(5, 6, 7), three) == 1
    assert send(policy, text(5, 8), three) == 1
    assert send(policy, text(9), three) == 2


def test_of_several_that_know_the_prefix_the_least_busy_is_taken():
    policy, two = PrefixAffinity(load_cap=1.0, spare_requests=0), replicas(2)
    assert [send(policy, text(1), two) for _ in range(4)] == [0, 1, 0, 1]
    policy.load_cap = 100.0
    policy.ended(text(1), 1)
    assert send(policy, text(1, 2), two) == 1


@given(
    texts=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=80),
    count=st.integers(1, 5),
    spare=st.integers(0, 2),
)
def test_nobody_has_more_than_the_cap(texts, count, spare):
    policy = PrefixAffinity(load_cap=1.25, spare_requests=spare)
    for sent, words in enumerate(texts, start=1):
        send(policy, text(*words), replicas(count))
        assert max(policy._loads.of) <= -(-5 * sent // (4 * count)) + spare


def test_only_so_many_blocks_are_remembered():
    policy = PrefixAffinity(most_blocks=10)
    for number in range(50):
        send(policy, text(*range(number, number + 4)), replicas(3))
    assert len(policy._holders) == 10
