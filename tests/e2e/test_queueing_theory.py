"""Replicas with one slot each, under several ways to route, against queueing theory."""

from math import factorial

import numpy as np
import pytest

from tests.e2e.scenarios import merged, run, synthetic
from tests.e2e.test_theory import ONE_SLOT, poisson, service_s


def of_replicas(replicas, routing):
    return merged(ONE_SLOT, {"cluster": {"replicas": replicas, "routing": routing}})


def exponential_rows(rate_per_s, mean_tokens, requests, seed):
    """A trace of Poisson arrivals whose outputs are exponential, up to whole tokens."""
    random = np.random.default_rng(seed)
    arrivals_s = np.cumsum(random.exponential(1 / rate_per_s, requests))
    outputs = np.ceil(random.exponential(mean_tokens, requests)).astype(int)
    return [(round(at_s, 9), 1, int(tokens)) for at_s, tokens in zip(arrivals_s, outputs, strict=True)]


def test_under_random_routing_each_replica_is_a_queue_of_its_own(tmp_path):
    """M/G/1 each: the mean wait is rate * E[S^2] / 2 / (1 - load), at a fourth of the rate of all."""
    load, outputs, replicas = 0.6, (1, 12), 4
    mean_s = np.mean([service_s(64, tokens, tmp_path) for tokens in range(outputs[0], outputs[1] + 1)])
    workload = synthetic(poisson(replicas * load / mean_s), 64, outputs, requests=30_000)
    result = run(of_replicas(replicas, "random") | {"workload": workload, "seed": 3}, tmp_path)
    requests = result.requests
    served_s = requests["end_s"] - requests["first_scheduled_s"]
    rate = load / mean_s
    expected_s = rate * np.mean(served_s**2) / 2 / (1 - rate * served_s.mean())
    low, high = result.summary["metrics"]["queue_s"]["ci"]["mean"]
    assert 0.9 * expected_s < low <= expected_s <= high < 1.1 * expected_s
    for replica in range(replicas):
        own_s = requests["queue_s"][requests["replica"] == replica]
        assert len(own_s) == pytest.approx(7_500, rel=0.04)
        assert own_s.mean() == pytest.approx(expected_s, rel=0.15)


@pytest.mark.parametrize("cv", [0.5, 2.0])
def test_kingmans_formula_holds_within_its_error(cv, tmp_path):
    """G/G/1 in heavy traffic: load / (1 - load) * (ca^2 + cs^2) / 2 service times (Kingman 1961)."""
    load, service = 0.9, service_s(64, 1, tmp_path)
    arrivals = {"name": "gamma", "rate_per_s": load / service, "cv": cv}
    workload = synthetic(arrivals, 64, 1, requests=40_000)
    result = run(merged(ONE_SLOT, {"workload": workload, "seed": 7}), tmp_path)
    expected_s = load / (1 - load) * cv**2 / 2 * service
    assert result.summary["metrics"]["queue_s"]["mean"] == pytest.approx(expected_s, rel=0.25)


def test_two_choices_are_far_better_than_one_and_knowing_all_is_better_still(tmp_path):
    """The supermarket model: sum of load^((d^i - d) / (d - 1)) service times with d choices (Mitzenmacher 2001)."""
    load, replicas, mean_tokens = 0.8, 20, 30
    per_token_s = (service_s(1, 61, tmp_path) - service_s(1, 1, tmp_path)) / 60
    mean_s = per_token_s * (mean_tokens + 0.5)
    rows = exponential_rows(replicas * load / mean_s, mean_tokens, 12_000, seed=2)
    times = {}
    for routing in ("random", "power-of-two", "least-requests"):
        requests = run(of_replicas(replicas, routing) | {"workload": {"rows": rows}}, tmp_path).requests
        served_s = (requests["end_s"] - requests["first_scheduled_s"]).mean()
        assert served_s == pytest.approx(mean_s, rel=0.02)
        times[routing] = requests["e2e_s"].mean() / served_s
    assert times["random"] == pytest.approx(1 / (1 - load), rel=0.12)
    two_choices = sum(load ** (2**i - 2) for i in range(1, 8))
    assert times["power-of-two"] == pytest.approx(two_choices, rel=0.06)
    assert 1.0 < times["least-requests"] < 0.8 * times["power-of-two"] < 0.5 * times["random"]


def test_a_queue_in_front_of_all_is_that_of_erlang(tmp_path):
    """M/M/n: the mean wait is C / (n * (1 - load)) service times, C being Erlang's probability of waiting."""
    load, replicas, mean_tokens = 0.8, 4, 30
    per_token_s = (service_s(1, 61, tmp_path) - service_s(1, 1, tmp_path)) / 60
    rows = exponential_rows(replicas * load / (per_token_s * (mean_tokens + 0.5)), mean_tokens, 12_000, seed=5)
    shared = {"workload": {"rows": rows}, "gateway": {"most_open_requests": 1}}
    requests = run(of_replicas(replicas, "least-requests") | shared, tmp_path).requests
    served_s = (requests["end_s"] - requests["first_scheduled_s"]).mean()
    offered = len(rows) / rows[-1][0] * served_s
    terms = [offered**k / factorial(k) for k in range(replicas + 1)]
    last = terms[-1] * replicas / (replicas - offered)
    waits = last / (sum(terms[:-1]) + last)
    assert (requests["queue_s"] > 0).mean() == pytest.approx(waits, rel=0.05)
    assert requests["queue_s"].mean() == pytest.approx(waits / (replicas - offered) * served_s, rel=0.1)
