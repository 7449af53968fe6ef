"""Whole runs of clusters by routing policy: against theory, against a single replica, stepped as well as jumped."""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest

from policies import registry
from policies.registry import built_in_names
from policies.routing import Routing
from simcore.build.simulation import Simulation
from tests.e2e.scenarios import differences, merged, run, synthetic
from tests.e2e.test_theory import ONE_SLOT, in_ns, lindley_ns, poisson, service_s

CHAT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4", "replicas": 3},
    "memory": {"num_gpu_blocks": 60, "block_size_tokens": 16},
    "scheduler": {"batching": {"max_running_requests": 4, "max_batched_tokens": 128}},
    "workload": {
        "requests": 120,
        "arrivals": {"name": "poisson", "rate_per_s": 60.0},
        "prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}],
        "prompt_tokens": {"name": "uniform", "low": 1, "high": 40},
        "output_tokens": {"name": "uniform", "low": 1, "high": 40},
        "session": {
            "name": "chat",
            "turns": {"name": "uniform", "low": 1, "high": 6},
            "think_time_s": {"name": "exponential", "mean_s": 0.05},
        },
    },
}


@dataclass
class LooksAtEverything(Routing):
    """Asks each replica all that a router may know, which must not change what it does, and sends by what it said."""

    def choose(self, request, replicas):
        return min(range(len(replicas)), key=lambda index: (*self._key(replicas[index], request), index))

    def _key(self, replica, request):
        cached = replica.cached_tokens(request)
        assert 0 <= cached < request.prompt_tokens
        assert cached % 16 == 0
        assert len(request.prefix_keys(16)) == request.prompt_tokens // 16
        assert 0 <= replica.free_blocks <= replica.total_blocks
        assert replica.queue_delay_s >= 0
        busy = replica.waiting_tokens + replica.running_tokens
        assert busy >= replica.waiting_requests
        return replica.waiting_requests + replica.running_requests > 6, -cached, busy


def with_policy(document, name, folder, **options):
    scenario = merged(document, {"cluster": {"routing": name}})
    known = {"looks-at-everything": f"{__name__}:LooksAtEverything"}
    with patch.object(registry, "_third_party", lambda kind: known if kind == "routing" else {}):
        return Simulation.prepare(scenario, folder).run(check=True, **options)


@pytest.mark.parametrize("name", [*built_in_names("routing"), "looks-at-everything"])
@pytest.mark.parametrize("ahead", [False, True])
def test_jumping_over_steps_routes_as_stepping_does(name, ahead, tmp_path):
    document = merged(CHAT, {"host": {"async_scheduling": ahead}})
    jumping = with_policy(document, name, tmp_path)
    assert differences(jumping, with_policy(document, name, tmp_path, fast_forward=False)) == []
    assert jumping.summary["counts"]["finished"] == 120
    assert len(np.unique(jumping.requests["replica"])) > 1


@pytest.mark.parametrize("name", [*built_in_names("routing"), "looks-at-everything"])
def test_a_cluster_of_one_is_a_single_replica(name, tmp_path):
    alone = merged(CHAT, {"cluster": {"replicas": 1}})
    single = run(alone, tmp_path)
    assert differences(single, with_policy(alone, name, tmp_path)) == []


def test_a_policy_that_sees_caches_finds_more(tmp_path):
    roomy = merged(CHAT, {"memory": {"num_gpu_blocks": 2000}})
    names = ("round-robin", "session-sticky", "prefix-affinity", "looks-at-everything")
    hits = {name: with_policy(roomy, name, tmp_path).summary["kv"]["prefix_hit_rate"] for name in names}
    assert min(hits[name] for name in names[1:]) > 1.1 * hits["round-robin"]


def test_sessions_stay_at_one_replica(tmp_path):
    scenario = merged(CHAT, {"cluster": {"routing": "session-sticky"}})
    simulation = Simulation.prepare(scenario, tmp_path)
    requests = simulation.run().requests
    session = simulation.workload.follow_ups.session[requests["request_id"]]
    assert np.bincount(session).max() > 1
    for one in np.unique(session):
        assert np.ptp(requests["replica"][session == one]) == 0


def test_random_routing_makes_queues_of_their_own(tmp_path):
    """Splitting a Poisson stream by chance leaves a Poisson stream to each: n one-slot replicas are n M/D/1 queues.

    Every single wait is that of its queue (Lindley), and their mean that of Pollaczek and Khinchine.
    """
    replicas, load = 4, 0.6
    service = service_s(64, 1, tmp_path)
    workload = synthetic(poisson(replicas * load / service), 64, 1, requests=20_000)
    scenario = merged(ONE_SLOT, {"workload": workload, "cluster": {"replicas": replicas, "routing": "random"}})
    result = run(scenario, tmp_path)
    requests = result.requests
    for replica in range(replicas):
        own = {name: column[requests["replica"] == replica] for name, column in requests.items()}
        assert len(own["queue_s"]) == pytest.approx(20_000 / replicas, rel=0.05)
        served_ns = in_ns(own["end_s"]) - in_ns(own["first_scheduled_s"])
        assert (in_ns(own["queue_s"]) == lindley_ns(in_ns(own["arrival_s"]), served_ns)).all()
        gaps = np.diff(own["arrival_s"])
        assert gaps.std() / gaps.mean() == pytest.approx(1.0, rel=0.04), "as an exponential has it"
    assert requests["queue_s"].mean() == pytest.approx(load / (1 - load) / 2 * service, rel=0.1)


def test_two_choices_shorten_queues_as_the_supermarket_model_says(tmp_path):
    """Of many M/M/1 queues at load r: r / (1 - r) requests at a replica under random routing, and the sum of
    r ** (2 ** k - 1) over k from 1 with the better of two (Vvedenskaya et al. 1996, Mitzenmacher 2001)."""
    replicas, load, requests = 20, 0.7, 6_000
    seconds = np.random.default_rng(4).exponential(50, requests)  # geometric outputs are exponential enough
    outputs = np.maximum(1, np.rint(seconds)).astype(int)
    step_s = (service_s(1, 101, tmp_path) - service_s(1, 1, tmp_path)) / 100
    rate = replicas * load / (outputs.mean() * step_s)
    arrivals = np.cumsum(np.random.default_rng(5).exponential(1 / rate, requests))
    rows = list(zip(arrivals.tolist(), [1] * requests, outputs.tolist(), strict=True))

    def mean_at_replica(routing):
        scenario = merged(ONE_SLOT, {"workload": {"rows": rows}, "cluster": {"replicas": replicas, "routing": routing}})
        found = run(scenario, tmp_path).requests
        settled = found["arrival_s"] > arrivals[-1] / 10
        return found["e2e_s"][settled].mean() * rate / replicas

    random, two, least = (mean_at_replica(name) for name in ("random", "power-of-two", "least-requests"))
    assert random == pytest.approx(load / (1 - load), rel=0.2)
    assert two == pytest.approx(sum(load ** (2**k - 1) for k in range(1, 8)), rel=0.1)
    assert load * 0.97 < least < two, "no policy does better than never to wait"
