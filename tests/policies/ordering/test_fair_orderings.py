"""Orderings that are fair among tenants: vtc, drr, wfq, drf, credit."""

from itertools import pairwise

import pytest

from policies.ordering.credit import Credit
from policies.ordering.drf import DominantResourceFairness
from policies.ordering.drr import DeficitRoundRobin
from policies.ordering.vtc import VirtualTokenCounter
from policies.ordering.wfq import WeightedFairQueueing
from policies.prediction.max_tokens import MaxTokens
from tests.policies.views import FakeGroup, FakeRequest


def tenant(name, prompt_served=0, output_served=0, context=0, arrival_s=0.0, number=0):
    return FakeGroup(name, FakeRequest(number, arrival_s, tenant=name), 0, context, prompt_served, output_served)


def serve(ordering, groups, now_s=0.0):
    """Admit the request whose turn it is; returns the name of its group."""
    chosen = ordering.choose(groups, now_s)
    ordering.admitted(chosen.first, now_s)
    return chosen.name


def test_the_counter_weighs_prompt_and_output_and_divides_by_the_tenants_weight():
    ordering = VirtualTokenCounter(prompt_weight=1.0, output_weight=2.0, weights={"b": 4.0})
    assert ordering.counter(tenant("a", 100, 50)) == 200.0
    assert ordering.counter(tenant("b", 100, 50)) == 50.0
    assert ordering.choose([tenant("a", 100, 50), tenant("b", 300, 240)], 0.0).name == "b"
    assert ordering.choose([tenant("a", 100, 50), tenant("b", 300, 260)], 0.0).name == "a"


def test_a_tenant_that_comes_back_is_lifted_to_the_least_counter_that_waits():
    ordering = VirtualTokenCounter()
    back = tenant("c", 10)
    ordering.activated(back, [tenant("a", 500), tenant("b", 300)])
    assert ordering.counter(back) == 300.0
    ordering.activated(back, [tenant("a", 100)])
    assert ordering.counter(back) == 300.0, "a lift never lowers a counter"


def test_one_that_comes_back_alone_is_lifted_to_what_the_tenant_served_last_has_by_now():
    """Algorithm 2 of the paper: to the present counter of the last client that left the queue."""
    ordering = VirtualTokenCounter()
    last, back = tenant("a", 300), tenant("b", 5)
    ordering.activated(last, [])
    assert serve(ordering, [last]) == "a"
    last.output_tokens_served = 100
    ordering.activated(back, [])
    assert ordering.counter(back) == 500.0


def test_being_asked_for_the_next_is_no_service():
    ordering = VirtualTokenCounter()
    first, second, back = tenant("a", 300), tenant("b", 400), tenant("c")
    assert serve(ordering, [first, second]) == "a"
    ordering.choose([second], 0.0)
    ordering.activated(back, [])
    assert ordering.counter(back) == 300.0


def rounds(ordering, costs, requests):
    """Admit ``requests`` of tenants that always wait, each served in full at once; returns what each was served."""
    groups = [tenant(name) for name in costs]
    for index, group in enumerate(groups):
        ordering.activated(group, groups[:index])
    served = dict.fromkeys(costs, 0)
    history = []
    for _ in range(requests):
        name = serve(ordering, groups)
        group = next(group for group in groups if group.name == name)
        group.output_tokens_served += costs[name]
        served[name] += costs[name]
        history.append(dict(served))
    return history


@pytest.mark.parametrize("quantum", [50, 1000])
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_turns_of_drr_share_service_within_a_quantum_and_a_request(quantum, weight):
    """A turn ends once its quantum is overdrawn, so no tenant is off its share by more than that and one request."""
    ordering = DeficitRoundRobin(quantum_tokens=quantum, weights={"b": weight})
    for served in rounds(ordering, {"a": 70, "b": 230}, 2000):
        assert abs(served["a"] - served["b"] / weight) <= quantum + 230


def test_one_turn_of_drr_is_worth_a_quantum():
    ordering = DeficitRoundRobin(quantum_tokens=100)
    history = rounds(ordering, {"a": 50, "b": 150}, 9)
    served = [{"a": 0, "b": 0}, *history]
    order = "".join("a" if now["a"] > past["a"] else "b" for past, now in pairwise(served))
    # "b" overdraws its first turn by 50; its second leaves 50, which is enough to start another; its third leaves none.
    assert order == "baabaaaab"


def test_asking_drr_does_not_use_up_turns():
    ordering = DeficitRoundRobin(quantum_tokens=100)
    groups = [tenant("a"), tenant("b")]
    for group in groups:
        ordering.activated(group, [])
    assert len({ordering.choose(groups, 0.0).name for _ in range(10)}) == 1


def test_drr_loses_what_is_left_of_a_quantum_when_a_queue_empties_and_keeps_what_is_owed():
    ordering = DeficitRoundRobin(quantum_tokens=100)
    thrifty, debtor = tenant("a"), tenant("b")
    for group in (thrifty, debtor):
        ordering.activated(group, [])
    assert serve(ordering, [thrifty]) == "a"
    thrifty.output_tokens_served = 30
    ordering.activated(thrifty, [])
    assert ordering._granted["a"] == 30, "70 are lost"
    assert serve(ordering, [debtor]) == "b"
    debtor.output_tokens_served = 250
    ordering.activated(debtor, [])
    assert ordering._granted["b"] == 100, "150 are still to be paid"


def test_drr_gives_nothing_for_turns_missed_while_away():
    ordering = DeficitRoundRobin(quantum_tokens=100)
    here, away = tenant("a"), tenant("b")
    ordering.activated(here, [])
    ordering.activated(away, [here])
    for _ in range(50):
        serve(ordering, [here])
        here.output_tokens_served += 100
    ordering.activated(away, [here])
    turns = []
    for _ in range(10):
        turns.append(serve(ordering, [here, away]))
        (here if turns[-1] == "a" else away).output_tokens_served += 100
    assert abs(turns.count("a") - turns.count("b")) <= 1


def test_a_tenant_of_drr_that_sends_one_large_request_at_a_time_gets_no_more_than_its_share():
    """Its queue is empty after each, but what it has overdrawn is not forgotten."""
    ordering = DeficitRoundRobin(quantum_tokens=100)
    small, large = tenant("a"), tenant("b")
    ordering.activated(small, [])
    ordering.activated(large, [small])
    for _ in range(1000):
        if serve(ordering, [small, large]) == "a":
            small.output_tokens_served += 100
        else:
            large.output_tokens_served += 1000
            ordering.activated(large, [small])
    assert abs(small.output_tokens_served - large.output_tokens_served) <= 1000 + 100


def stamped(ordering, number, name, prompt, output, **more):
    return ordering.key(FakeRequest(number, 0.0, prompt, output, name, **more), 0.0)[0]


def test_a_tenants_requests_are_stamped_in_turn_by_cost_over_weight():
    ordering = WeightedFairQueueing(weights={"b": 2.0}, predictor=MaxTokens())
    assert [stamped(ordering, number, "a", 60, 40) for number in (0, 1)] == [100.0, 200.0]
    assert [stamped(ordering, number, "b", 60, 40) for number in (2, 3)] == [50.0, 100.0]


def test_virtual_time_is_the_stamp_of_the_request_admitted_last():
    ordering = WeightedFairQueueing(predictor=MaxTokens())
    for number in range(3):
        stamped(ordering, number, "a", 60, 40)
    ordering.admitted(FakeRequest(1, tenant="a"), 0.0)
    assert stamped(ordering, 3, "b", 6, 4) == 210.0, "a newcomer starts now, not at nought"
    assert stamped(ordering, 4, "a", 6, 4) == 310.0, "who has requests waiting goes on from the last of them"
    ordering.admitted(FakeRequest(0, tenant="a"), 0.0)
    assert stamped(ordering, 5, "c", 6, 4) == 210.0, "virtual time never goes back"


def test_stamps_of_requests_that_are_gone_are_forgotten():
    ordering = WeightedFairQueueing(predictor=MaxTokens())
    for number in range(5):
        request = FakeRequest(number, tenant="a")
        ordering.key(request, 0.0)
        if number % 2 == 0:
            ordering.admitted(request, 0.0)
        ordering.ended(request)
    assert not ordering._stamps
    assert stamped(ordering, 5, "a", 60, 40) > 5 * 100.0, "but a tenant's turn goes on from the last"


def test_a_preempted_request_keeps_its_stamp():
    ordering = WeightedFairQueueing(predictor=MaxTokens())
    assert stamped(ordering, 0, "a", 60, 40) == 100.0
    ordering.admitted(FakeRequest(0, tenant="a"), 0.0)
    assert stamped(ordering, 0, "a", 60, 40, preemptions=1) == 100.0


def test_the_greater_of_both_shares_is_dominant():
    """ "a" has computed most tokens, "b" holds most memory; "c" has little of either."""
    groups = [tenant("a", 600, 100, 100), tenant("b", 100, 50, 800), tenant("c", 100, 50, 100)]
    ordering = DominantResourceFairness()
    assert ordering.choose(groups, 0.0).name == "c"
    assert ordering.choose(groups[:2], 0.0).name == "a", "700 / 850 is less than 800 / 900"
    groups[1].context_tokens = 400
    assert ordering.choose(groups[:2], 0.0).name == "b", "400 / 500 is less than 700 / 850"


def test_a_tenant_of_drf_that_comes_back_has_saved_up_nothing():
    """It is lifted to the least that waits, or, alone, to what the tenant served last has had by now."""
    ordering = DominantResourceFairness()
    here, back = tenant("a", 1000), tenant("b", 10)
    ordering.activated(here, [])
    ordering.activated(back, [here])
    assert [serve_and_count(ordering, here, back) for _ in range(4)] == ["a", "b", "a", "b"]

    ordering = DominantResourceFairness()
    last, back = tenant("a", 300), tenant("b")
    ordering.activated(last, [])
    assert serve(ordering, [last]) == "a"
    last.output_tokens_served = 100
    ordering.activated(back, [])
    assert [serve_and_count(ordering, last, back) for _ in range(4)] == ["a", "b", "a", "b"]


def serve_and_count(ordering, *groups):
    """Serve 100 tokens to whose turn it is."""
    name = serve(ordering, groups)
    next(group for group in groups if group.name == name).output_tokens_served += 100
    return name


def test_a_lift_of_drf_counts_by_weight():
    ordering = DominantResourceFairness(weights={"b": 2.0})
    here, back = tenant("a", 1000), tenant("b")
    ordering.activated(here, [])
    ordering.activated(back, [here])
    served = [serve_and_count(ordering, here, back) for _ in range(9)]
    assert served.count("b") == 2 * served.count("a")


def test_dominant_shares_are_divided_by_weights_and_ties_go_by_name():
    assert DominantResourceFairness().choose([tenant("b"), tenant("a")], 0.0).name == "a"
    groups = [tenant("a", 40), tenant("b", 60)]
    assert DominantResourceFairness().choose(groups, 0.0).name == "a"
    assert DominantResourceFairness(weights={"b": 2.0}).choose(groups, 0.0).name == "b"


def test_those_with_credit_left_go_first_by_arrival():
    ordering = Credit(tokens_per_window=250.0, window_s=10.0, predictor=MaxTokens())
    early, late = tenant("a", arrival_s=0.0), tenant("b", arrival_s=1.0, number=1)
    for group in (early, late):
        group.first.max_output_tokens = 50
    assert [serve(ordering, [early, late], 2.0) for _ in range(5)] == ["a", "a", "b", "b", "a"]


def test_credit_comes_back_with_the_next_window_and_does_not_add_up():
    ordering = Credit(tokens_per_window=100.0, window_s=10.0, predictor=MaxTokens())
    early, late = tenant("a", arrival_s=0.0), tenant("b", arrival_s=1.0, number=1)
    assert [serve(ordering, [early, late], now_s) for now_s in (9.0, 9.0, 9.0)] == ["a", "b", "a"]
    assert [serve(ordering, [early, late], now_s) for now_s in (9.9, 10.0, 10.1)] == ["a", "a", "b"]
    assert [serve(ordering, [early, late], now_s) for now_s in (55.0, 55.0)] == ["a", "b"]


def test_single_tenants_may_have_credits_of_their_own():
    ordering = Credit(tokens_per_window=100.0, credits={"a": 0.0}, predictor=MaxTokens())
    assert ordering.choose([tenant("a", arrival_s=0.0), tenant("b", arrival_s=1.0)], 2.0).name == "b"


@pytest.mark.parametrize(
    ("policy", "parameters", "message"),
    [
        (VirtualTokenCounter, {"weights": {"a": 0.0}}, "weights.a is 0.0, expected a number from"),
        (VirtualTokenCounter, {"weights": {"a": -1.0}}, "weights.a is -1.0, expected a number from"),
        (VirtualTokenCounter, {"prompt_weight": -1.0}, "prompt_weight is -1.0, expected a number from 0 to"),
        (VirtualTokenCounter, {"output_weight": -1.0}, "output_weight is -1.0, expected a number from 0 to"),
        (DeficitRoundRobin, {"quantum_tokens": 0}, "quantum_tokens is 0, expected a whole number from 1 to"),
        (DeficitRoundRobin, {"weights": {"a": -1.0}}, "weights.a is -1.0, expected a number from"),
        (WeightedFairQueueing, {"weights": {"a": 0.0}}, "weights.a is 0.0, expected a number from"),
        (DominantResourceFairness, {"weights": {"a": 0.0}}, "weights.a is 0.0, expected a number from"),
        (Credit, {"tokens_per_window": 0.0}, "tokens_per_window is 0.0, expected a number from 1e-09 to"),
        (Credit, {"window_s": -1.0}, "window_s is -1.0, expected a number from 1e-09 to"),
        (Credit, {"credits": {"a": -1.0}}, "credits.a is -1.0, expected a number from 0 to"),
    ],
)
def test_parameters_out_of_range(policy, parameters, message):
    with pytest.raises(ValueError, match=message):
        policy(**parameters)
