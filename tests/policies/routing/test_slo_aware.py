"""Routing by the expected first token."""

from policies.routing.slo_aware import SloAware
from simcore.scenario import parse_scenario
from tests.policies.views import FakeReplica, FakeRequest


def replica(queue=0, cached=0, running=0):
    return FakeReplica(waiting_tokens=queue, cached=cached, running_tokens=running)


def choice(*replicas, **policy):
    request = FakeRequest(0, prompt_tokens=1000)
    return SloAware(ttft_s=1.0, prefill_tokens_per_s=1000.0, **policy).choose(request, replicas)


def test_of_those_in_time_the_fewest_tokens_decide():
    assert choice(replica(), replica(cached=500), replica(cached=400)) == 1
    assert choice(replica(running=900), replica(running=200), replica(cached=300, running=600)) == 1


def test_a_cache_that_comes_too_late_is_no_use():
    assert choice(replica(queue=600, cached=500), replica()) == 1


def test_if_nobody_is_in_time_the_first_to_be_takes_it():
    assert choice(replica(queue=900), replica(queue=1500, cached=900), replica(queue=700)) == 1


def test_candidates_are_as_many_as_stated_and_differ():
    policy = SloAware(candidates=3)
    for number in range(50):
        drawn = policy._drawn(FakeRequest(number), 10)
        assert len(set(drawn)) == len(drawn) == 3


def test_the_limit_is_the_tightest_objective():
    one = {"name": "fixed", "tokens": 1}
    workload = {"requests": 1, "arrivals": {"name": "at-once"}, "prompt_tokens": one, "output_tokens": one}
    scenario = parse_scenario(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "l4", "routing": "slo-aware"},
            "workload": workload,
            "slo": {"ttft_s": {"p50": 0.5, "p99": 3.0}},
        }
    )
    assert scenario.cluster.routing["ttft_s"] == 0.5
