from dataclasses import dataclass

import pytest

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.horizon import FOREVER
from policies.ordering.fcfs import FirstComeFirstServed
from policies.preemption.latest import Latest
from policies.routing.dedicated import Dedicated
from policies.routing.round_robin import RoundRobin


@dataclass
class FakeRequest:
    number: int = 0
    arrival_s: float = 0.0
    tenant: str = ""


@dataclass
class FakeReplica:
    waiting_requests: int = 0
    running_requests: int = 0


def test_first_come_is_first_served_whenever_it_entered_the_queue():
    key = FirstComeFirstServed().key
    assert key(FakeRequest(arrival_s=1.0), now_s=50.0) < key(FakeRequest(arrival_s=2.0), now_s=3.0)


def test_the_last_admitted_is_the_victim():
    running = {number: FakeRequest(number) for number in (4, 9, 2)}
    assert Latest().victim(running.values()).number == 2


def test_round_robin_takes_each_in_turn():
    routing = RoundRobin()
    replicas = [FakeReplica()] * 3
    assert [routing.choose(FakeRequest(), replicas) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_a_tenant_with_dedicated_replicas_has_them_to_itself():
    routing = Dedicated({"gold": 2, "silver": 1})
    replicas = [FakeReplica()] * 5
    tenants = ["gold", "", "silver", "gold", "bronze", "gold", "silver", ""]
    chosen = [routing.choose(FakeRequest(tenant=tenant), replicas) for tenant in tenants]
    assert chosen == [0, 3, 2, 1, 4, 0, 2, 3]


def test_dedicated_replicas_must_be_there_and_leave_one_for_the_others():
    routing = Dedicated({"gold": 2, "silver": 1})
    routing.check_replicas(4)
    with pytest.raises(ValueError, match="tenants takes 3 replicas, expected at most 2 of 3"):
        routing.check_replicas(3)
    with pytest.raises(ValueError, match=r"tenants.gold is 0, expected a whole number from 1"):
        Dedicated({"gold": 0})


def test_limits_of_chunked_prefill():
    policy = ChunkedPrefill(max_batched_tokens=2048, max_running_requests=64)
    for replica in (FakeReplica(0, 0), FakeReplica(5, 9)):
        limits = policy.limits(replica, 0.0)
        assert (limits.max_batched_tokens, limits.max_running_requests, limits.max_chunk_tokens) == (2048, 64, 2048)
        assert limits.stable_steps == FOREVER


@pytest.mark.parametrize(
    ("waiting", "running", "chunk"), [(1, 0, 2048), (0, 1, 2048), (1, 1, 512), (0, 2, 512), (2, 0, 512)]
)
def test_a_long_prompt_is_held_back_only_beside_others(waiting, running, chunk):
    policy = ChunkedPrefill(max_batched_tokens=2048, long_prefill_threshold_tokens=512)
    limits = policy.limits(FakeReplica(waiting, running), 0.0)
    assert (limits.max_batched_tokens, limits.max_chunk_tokens) == (2048, chunk)


@pytest.mark.parametrize("field", ["max_batched_tokens", "max_running_requests", "long_prefill_threshold_tokens"])
def test_limits_below_one_are_refused(field):
    with pytest.raises(ValueError, match=f"{field} is 0, expected a whole number from 1 to"):
        ChunkedPrefill(**{field: 0})
