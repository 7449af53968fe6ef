from policies.prediction.max_tokens import MaxTokens
from policies.prediction.oracle import Oracle
from policies.preemption.fewest_tokens_lost import FewestTokensLost
from policies.preemption.latest import Latest
from policies.preemption.longest_remaining import LongestRemaining
from policies.preemption.lowest_priority import LowestPriority
from tests.policies.views import FakeRequest, known


def victim(policy, *requests):
    """The victim's number; requests are given in order of admission."""
    return policy.victim({request.number: request for request in requests}.values()).number


def test_the_one_admitted_last():
    assert victim(Latest(), FakeRequest(4), FakeRequest(9), FakeRequest(2)) == 2


def test_the_one_with_least_in_memory_and_of_equals_the_one_that_came_last():
    requests = [FakeRequest(0, tokens_in_memory=60), FakeRequest(1, tokens_in_memory=59), FakeRequest(2, 100)]
    requests[2].tokens_in_memory = 100
    assert victim(FewestTokensLost(), *requests) == 1
    requests[1].tokens_in_memory = 60
    assert victim(FewestTokensLost(), *requests) == 1
    requests[1].tokens_in_memory = 61
    assert victim(FewestTokensLost(), *requests) == 0


def test_of_a_prompt_that_is_half_prefilled_half_is_lost():
    requests = [
        FakeRequest(0, prompt_tokens=50, generated_tokens=10, tokens_in_memory=59),
        FakeRequest(1, prompt_tokens=10_000, tokens_in_memory=40),
    ]
    assert victim(FewestTokensLost(), *requests) == 1


def test_the_furthest_from_its_end_and_of_equals_the_one_that_came_last():
    policy = LongestRemaining(known(Oracle(), _0=100, _1=60, _2=60))
    requests = [FakeRequest(0, generated_tokens=70), FakeRequest(1), FakeRequest(2)]
    assert victim(policy, *requests) == 2
    requests[2].generated_tokens = 1
    assert victim(policy, *requests) == 1
    assert policy.predictors == (policy.predictor,)


def test_what_remains_is_as_the_predictor_has_it():
    requests = [FakeRequest(0, max_output_tokens=500, generated_tokens=200), FakeRequest(1, max_output_tokens=299)]
    assert victim(LongestRemaining(MaxTokens()), *requests) == 0


def test_the_least_urgent_and_of_equals_the_one_that_arrived_last():
    requests = [FakeRequest(0, 9.0, priority=1), FakeRequest(1, 1.0, priority=3), FakeRequest(2, 2.0, priority=3)]
    assert victim(LowestPriority(), *requests) == 2
    assert victim(LowestPriority(), *requests[:2]) == 1
