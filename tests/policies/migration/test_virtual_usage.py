"""Which requests move, by the freeness of replicas."""

from dataclasses import dataclass, field

import pytest

from policies.migration import Move
from policies.migration.virtual_usage import VirtualUsage
from tests.policies.views import FakeReplica, FakeRequest


@dataclass
class Replica(FakeReplica):
    decoding: list = field(default_factory=list)
    block_tokens: int = 10
    is_moving: bool = False


def requests(*tokens, first=0, priority=0):
    return [FakeRequest(first + place, tokens_in_memory=each, priority=priority) for place, each in enumerate(tokens)]


def full(*tokens, **parameters):
    return Replica(free_blocks=1, running_requests=len(tokens), decoding=requests(*tokens), **parameters)


def free(blocks=100, running=1, **parameters):
    return Replica(free_blocks=blocks, running_requests=running, **parameters)


def test_freeness_is_steps_until_memory_is_full():
    policy = VirtualUsage(headroom_tokens={0: 300})
    assert policy.freeness(free(blocks=100, running=4)) == 250
    assert policy.freeness(free(blocks=100, running=4, next_blocks=120)) == -50
    assert policy.freeness(free(blocks=100, running=0)) == 1000
    assert policy.freeness(free(blocks=100, running=4, decoding=requests(5))) == (1000 - 300) / 4
    assert policy.freeness(free(blocks=100, running=4, decoding=requests(5, priority=1))) == 250


def test_the_fullest_gives_to_the_freest():
    replicas = [free(50), full(5, 5), free(100), full(5, 5, 5), free(20, running=9)]
    moves = VirtualUsage().moves(replicas, 0.0)
    assert [(move.source, move.target) for move in moves] == [(3, 2), (1, 0)]


def test_the_least_urgent_with_the_least_memory_goes():
    source = full(50, 20, 30)
    source.decoding += requests(60, 40, first=3, priority=2)
    assert VirtualUsage().moves([source, free()], 0.0) == [Move(0, 1, source.decoding[4])]


def test_nobody_goes_where_it_has_no_room():
    source = full(2000, 900)
    assert VirtualUsage().moves([source, free(100)], 0.0) == [Move(0, 1, source.decoding[1])]
    assert not VirtualUsage().moves([source, free(80)], 0.0)


@pytest.mark.parametrize("moving", [0, 1])
def test_who_is_moving_neither_gives_nor_takes(moving):
    replicas = [full(5), free()]
    replicas[moving].is_moving = True
    assert not VirtualUsage().moves(replicas, 0.0)


def test_thresholds_that_cross_are_refused():
    with pytest.raises(ValueError, match=r"take_above_steps is 3, expected at least give_below_steps, 5"):
        VirtualUsage(give_below_steps=5.0, take_above_steps=3.0)


def test_headroom_below_zero_is_refused():
    with pytest.raises(ValueError, match=r"headroom_tokens\.1"):
        VirtualUsage(headroom_tokens={1: -1})
