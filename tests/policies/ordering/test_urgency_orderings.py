"""Orderings by urgency: priority, hybrid, two-level, edf."""

import pytest

from policies.ordering.edf import EarliestDeadlineFirst
from policies.ordering.hybrid import Hybrid
from policies.ordering.mlfq import MultiLevelFeedbackQueue
from policies.ordering.priority import Priority
from policies.ordering.sjf import ShortestJobFirst
from policies.ordering.two_level import TwoLevel
from policies.ordering.vtc import VirtualTokenCounter
from policies.prediction.oracle import Oracle
from tests.policies.views import FakeGroup, FakeRequest, known


def level(priority, arrival_s=0.0, service_s=0.0, number=None, prompt_tokens=100):
    """A level whose next request came at that time."""
    request = FakeRequest(priority if number is None else number, arrival_s, prompt_tokens, priority=priority)
    return FakeGroup(str(priority), request, service_s=service_s)


def test_the_most_urgent_level_is_first_however_long_others_wait():
    ordering = Priority()
    assert ordering.group(FakeRequest(priority=12)) == "12"
    assert ordering.choose([level(12, 0.0), level(2, 500.0)], now_s=1000.0).name == "2"


@pytest.mark.parametrize(("later_s", "first"), [(0.0, "0"), (19.9, "0"), (20.1, "2"), (1000.0, "2")])
def test_ageing_lets_a_request_be_overtaken_only_by_those_that_come_soon_after(later_s, first):
    """Two levels of 10 s each: a request of level 0 overtakes one of level 2 that came up to 20 s before it."""
    assert Priority(ageing_s=10.0).choose([level(2, 5.0), level(0, 5.0 + later_s)], 5000.0).name == first


def test_a_tie_of_aged_urgency_goes_to_the_one_that_arrived_first():
    assert Priority(ageing_s=10.0).choose([level(0, 15.0), level(1, 5.0)], 15.0).name == "1"


def test_a_level_below_its_minimum_share_goes_before_more_urgent_ones():
    ordering = Priority(minimum_share={2: 0.2})
    assert ordering.choose([level(0, 0.0, 8.1), level(2, 9.0, 1.9)], 10.0).name == "2"
    assert ordering.choose([level(0, 0.0, 8.0), level(2, 9.0, 2.0)], 10.0).name == "0"
    assert ordering.choose([level(0, 0.0), level(2, 9.0)], 10.0).name == "0"


@pytest.mark.parametrize(
    "make", [lambda: Priority(minimum_share={2: 0.2}, window_s=10.0), lambda: Hybrid(lowest_share=0.2, window_s=10.0)]
)
def test_shares_are_of_a_recent_window_and_not_of_the_whole_run(make):
    """The patient level has had nearly all of the first window, and still is sure of its share of the second."""
    ordering = make()
    urgent, patient = level(0, 0.0, 0.1), level(2, 0.0, 9.0)
    ordering.activated(urgent, [])
    ordering.activated(patient, [urgent])
    assert ordering.choose([urgent, patient], 9.9).name == "0"
    turns = ""
    for step in range(50):
        now_s = 15.0 + 0.05 * step
        chosen = ordering.choose([urgent, patient], now_s)
        ordering.admitted(chosen.first, now_s)
        chosen.service_s += 0.05
        turns += chosen.name
    assert turns[:8] == "02000020", "first the urgent, then whoever is short of 20% of what came since"
    assert turns.count("2") == 10


@pytest.mark.parametrize("service_s", [0.0, 20.0], ids=["first step", "later"])
@pytest.mark.parametrize("make", [lambda: Priority(minimum_share={2: 0.2}), lambda: Hybrid(lowest_share=0.2)])
def test_who_is_admitted_into_a_step_is_charged_at_once(make, service_s):
    """Or a level that is short of its share would fill the step: its time is only known when that ends."""
    ordering = make()
    urgent, patient = level(0, 0.0, 0.8 * service_s), level(2, 0.0, 0.2 * service_s)
    for group in (urgent, patient):
        group.prompt_tokens_served = 5000
        ordering.activated(group, [])
    turns = ""
    for _ in range(25):
        chosen = ordering.choose([urgent, patient], 5.0)
        ordering.admitted(chosen.first, 5.0)
        turns += chosen.name
    assert turns.count("2") == 5


def test_of_an_idle_level_nothing_is_owed_in_the_next_window():
    ordering = Priority(minimum_share={2: 0.5}, window_s=10.0)
    urgent, patient = level(0, 0.0), level(2, 0.0)
    ordering.activated(urgent, [])
    for now_s in (1.0, 11.0):
        ordering.admitted(ordering.choose([urgent], now_s).first, now_s)
        urgent.service_s += 10.0
    ordering.activated(patient, [urgent])
    assert ordering.choose([urgent, patient], 19.0).name == "2"
    assert ordering.choose([urgent, patient], 20.0).name == "0"


def test_of_two_levels_below_their_shares_the_more_urgent_goes_first():
    ordering = Priority(minimum_share={1: 0.3, 2: 0.3})
    assert ordering.choose([level(0, 0.0, 1.0), level(2, 1.0), level(1, 2.0)], 10.0).name == "1"


def test_inside_the_levels_of_a_hybrid_the_shortest_is_first():
    ordering = Hybrid(predictor=known(Oracle(), _0=50, _1=7))
    assert ordering.key(FakeRequest(1, 9.0), 10.0) < ordering.key(FakeRequest(0, 1.0), 10.0)
    assert ordering.group(FakeRequest(priority=3)) == "3"


@pytest.mark.parametrize(("share", "first"), [(0.0, "2"), (0.2, "2"), (0.21, "10")])
def test_the_lowest_level_of_a_hybrid_gets_its_share(share, first):
    """Level 10 has had 2 of 10 seconds. Levels are compared as numbers, not as text."""
    groups = [level(10, 0.0, 2.0), level(9, 0.0, 3.0), level(2, 0.0, 5.0)]
    assert Hybrid(lowest_share=share).choose(groups, 1.0).name == first


def test_two_levels_sort_by_class_and_then_by_the_inner_ordering():
    ordering = TwoLevel(ShortestJobFirst(known(Oracle(), _0=50, _1=7, _2=99)))
    requests = [FakeRequest(0, 0.0, priority=1), FakeRequest(1, 1.0, priority=1), FakeRequest(2, 2.0, priority=0)]
    assert sorted(range(3), key=lambda number: ordering.key(requests[number], 0.0)) == [2, 1, 0]
    assert ordering.predictors == (ordering.inner.predictor,)
    assert TwoLevel(MultiLevelFeedbackQueue()).stable_steps == 1


def test_an_ordering_by_groups_cannot_be_the_inner_one():
    """Its keys alone say nothing of whose turn it is."""
    with pytest.raises(ValueError, match="inner is a VirtualTokenCounter, expected an ordering that sorts by a key"):
        TwoLevel(VirtualTokenCounter())


def test_the_earliest_deadline_is_first():
    ordering = EarliestDeadlineFirst(ttft_s=5.0, ttft_s_by_priority={0: 0.5})
    assert ordering.key(FakeRequest(0, 1.0, priority=0), 9.0) == (1.5,)
    assert ordering.key(FakeRequest(1, 1.0, priority=3), 9.0) == (6.0,)


@pytest.mark.parametrize(
    ("policy", "parameters", "message"),
    [
        (Priority, {"ageing_s": 0.0}, "ageing_s is 0.0, expected a number from 1e-09 to"),
        (Priority, {"window_s": 0.0}, "window_s is 0.0, expected a number from 1e-09 to"),
        (Hybrid, {"window_s": -1.0}, "window_s is -1.0, expected a number from 1e-09 to"),
        (Priority, {"minimum_share": {0: -0.1}}, "minimum_share is .* expected shares that add up to at most 1"),
        (Priority, {"minimum_share": {0: 0.6, 1: 0.5}}, "minimum_share is .* expected shares that add up to at most 1"),
        (Hybrid, {"lowest_share": 1.0}, "lowest_share is 1.0, expected a number from 0 to less than 1"),
        (Hybrid, {"lowest_share": -0.1}, "lowest_share is -0.1, expected a number from 0 to less than 1"),
        (EarliestDeadlineFirst, {"ttft_s": 0.0}, "ttft_s is 0.0, expected a number from 1e-09 to"),
        (EarliestDeadlineFirst, {"ttft_s_by_priority": {1: -2.0}}, "is -2.0, expected a number from 1e-09 to"),
    ],
)
def test_parameters_out_of_range(policy, parameters, message):
    with pytest.raises(ValueError, match=message):
        policy(**parameters)
