"""Orderings by predicted size: sjf, srpt, and the levels of mlfq."""

import pytest

from policies.horizon import FOREVER
from policies.ordering.mlfq import MultiLevelFeedbackQueue
from policies.ordering.sjf import ShortestJobFirst
from policies.ordering.srpt import ShortestRemainingFirst
from policies.prediction.max_tokens import MaxTokens
from policies.prediction.oracle import Oracle
from tests.policies.views import FakeRequest, known


def in_order(ordering, requests):
    """Numbers of the requests as a queue sorts them."""
    return [request.number for request in sorted(requests, key=lambda request: ordering.key(request, 0.0))]


def test_the_shortest_job_is_first_and_equals_keep_the_order_of_arrival():
    ordering = ShortestJobFirst(known(Oracle(), _0=50, _1=7, _2=20, _3=7))
    requests = [FakeRequest(number, arrival_s=float(number)) for number in (3, 2, 0, 1)]
    assert in_order(ordering, requests) == [1, 3, 2, 0]
    assert not ordering.preemptive
    assert ordering.predictors == (ordering.predictor,)


def test_a_job_keeps_its_size_whatever_it_has_generated_and_what_remains_shrinks():
    job, remaining = (kind(known(Oracle(), _0=50, _1=20)) for kind in (ShortestJobFirst, ShortestRemainingFirst))
    requests = [FakeRequest(0, 0.0, generated_tokens=45), FakeRequest(1, 1.0)]
    assert in_order(job, requests) == [1, 0]
    assert in_order(remaining, requests) == [0, 1]
    assert remaining.key(requests[0], 0.0) == (5.0, 0.0)
    assert remaining.preemptive


def test_sizes_are_those_of_the_chosen_predictor():
    ordering = ShortestJobFirst(MaxTokens())
    assert in_order(ordering, [FakeRequest(0, max_output_tokens=9), FakeRequest(1, max_output_tokens=8)]) == [1, 0]


@pytest.mark.parametrize(("corrected", "steps"), [(False, FOREVER), (True, 1)])
def test_the_order_of_what_remains_stands_unless_estimates_are_corrected(corrected, steps):
    assert ShortestRemainingFirst(Oracle(corrected=corrected)).stable_steps == steps


@pytest.mark.parametrize(
    ("generated", "level"), [(0, 0), (15, 0), (16, 1), (47, 1), (48, 2), (111, 2), (112, 3), (10**6, 3)]
)
def test_a_request_sinks_as_it_uses_up_quanta_of_16_32_64(generated, level):
    ordering = MultiLevelFeedbackQueue(levels=4, quantum_tokens=16, prompt_weight=0.0)
    assert ordering.level(FakeRequest(generated_tokens=generated)) == level


@pytest.mark.parametrize(("prompt", "level"), [(800, 0), (801, 1), (1600, 1), (1601, 2), (3201, 3), (10**6, 3)])
def test_a_long_prompt_joins_at_the_level_whose_quantum_covers_it(prompt, level):
    ordering = MultiLevelFeedbackQueue(levels=4, quantum_tokens=16, prompt_weight=0.02)
    assert ordering.level(FakeRequest(prompt_tokens=prompt)) == level


def test_from_the_level_it_joined_at_a_request_sinks_by_that_levels_quantum():
    ordering = MultiLevelFeedbackQueue(levels=4, quantum_tokens=16, prompt_weight=0.02)
    levels = [
        ordering.level(FakeRequest(prompt_tokens=1000, generated_tokens=tokens)) for tokens in (0, 31, 32, 95, 96)
    ]
    assert levels == [1, 1, 2, 2, 3]


def test_a_promoted_request_sinks_anew_from_the_top():
    """FastServe: it has the quantum of the top level before it, whatever it has used up."""
    ordering = MultiLevelFeedbackQueue(levels=4, quantum_tokens=16, prompt_weight=0.02, starvation_s=5.0)
    request = FakeRequest(prompt_tokens=1000, generated_tokens=200)
    assert (ordering.level(request), ordering.promotes_after_s) == (3, 5.0)
    ordering.promoted(request)
    levels = []
    for tokens in (200, 215, 216, 247, 248, 312):
        request.generated_tokens = tokens
        levels.append(ordering.level(request))
    assert levels == [0, 0, 1, 1, 2, 3]
    ordering.ended(request)
    assert ordering.level(request) == 3, "and is forgotten"


@pytest.mark.parametrize("growth", [1.0, 1.3, 2.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda growth: MultiLevelFeedbackQueue(levels=5, quantum_tokens=3, growth=growth),
        lambda _: ShortestRemainingFirst(known(Oracle(corrected=True), _0=7)),
        lambda _: ShortestRemainingFirst(known(Oracle(), _0=7)),
    ],
    ids=["mlfq", "srpt, corrected", "srpt"],
)
def test_until_a_key_may_rise_it_stays_or_falls_as_stated(make, growth):
    ordering = make(growth)
    request = FakeRequest(0, generated_tokens=1)
    for _ in range(60):
        first, steps = ordering.key(request, 0.0)[0], ordering.tokens_until_rise(request)
        for step in range(min(steps, 30)):
            assert ordering.key(request, 0.0)[0] == first - step * ordering.falls_by_token
            request.generated_tokens += 1


def test_within_a_level_the_order_is_that_of_arrival_and_any_token_may_change_it():
    ordering = MultiLevelFeedbackQueue()
    old, young = FakeRequest(0, 0.0, generated_tokens=16), FakeRequest(1, 9.0)
    assert in_order(ordering, [old, young, FakeRequest(2, 5.0)]) == [2, 1, 0]
    assert (ordering.preemptive, ordering.stable_steps) == (True, 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"levels": 0}, "levels is 0, expected a whole number from 1 to 64"),
        ({"quantum_tokens": 0}, "quantum_tokens is 0, expected a whole number from 1 to 2147483647"),
        ({"levels": 65}, "levels is 65, expected a whole number from 1 to 64"),
        ({"starvation_s": 0.0}, "starvation_s is 0.0, expected a number from 1e-09"),
        ({"growth": 0.5}, "growth is 0.5, expected a number from 1 to 1e"),
        ({"prompt_weight": -1.0}, "prompt_weight is -1.0, expected a number from 0 to 1e"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        MultiLevelFeedbackQueue(**parameters)
