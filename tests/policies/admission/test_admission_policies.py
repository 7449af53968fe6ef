"""Each admission policy by hand, and all of them in a run."""

from dataclasses import dataclass

import pytest

from policies.admission.circuit_breaker import CircuitBreaker
from policies.admission.concurrency_limit import ConcurrencyLimit
from policies.admission.leaky_bucket import LeakyBucket
from policies.admission.priority_shedding import PriorityShedding
from policies.admission.queue_limit import QueueLimit
from policies.admission.sliding_window import SlidingWindow
from policies.admission.token_bucket import TokenBucket
from policies.admission.watermark import Watermark
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError


@dataclass
class Sent:
    number: int = 0
    tenant: str = ""
    priority: int = 0
    prompt_tokens: int = 100
    max_output_tokens: int = 50


@dataclass
class Service:
    waiting_requests: int = 0
    running_requests: int = 0
    kv_used_share: float = 0.0


def let_in(policy, now_s, request=None, service=None):
    """Whether a request is let in; if so, the policy is told."""
    request = request or Sent()
    if policy.rejects(request, service or Service(), now_s) is not None:
        return False
    policy.accepted(request, now_s)
    return True


def test_the_queue_limit_counts_those_that_wait():
    policy = QueueLimit(max_waiting_requests=3)
    assert [let_in(policy, 0, service=Service(waiting)) for waiting in (0, 2, 3, 4)] == [True, True, False, False]


def test_the_concurrency_limit_frees_a_place_at_the_end():
    policy = ConcurrencyLimit(max_requests=2, per_tenant=True)
    one, other = Sent(tenant="one"), Sent(tenant="other")
    assert [let_in(policy, 0, request) for request in (one, one, one, other)] == [True, True, False, True]
    policy.finished(one, 0.1, 1.0)
    assert [let_in(policy, 1, request) for request in (one, one)] == [True, False]


def test_the_concurrency_limit_frees_the_place_of_a_request_that_was_dropped():
    policy = ConcurrencyLimit(max_requests=1)
    assert [let_in(policy, 0), let_in(policy, 0)] == [True, False]
    policy.dropped(Sent(), 1.0)
    assert let_in(policy, 1)


def test_a_token_bucket_allows_a_burst_and_then_its_rate():
    policy = TokenBucket(rate_per_s=2.0, burst=3.0)
    assert [let_in(policy, 0.0) for _ in range(4)] == [True, True, True, False]
    assert [let_in(policy, now_s) for now_s in (0.25, 0.5, 0.5, 1.0)] == [False, True, False, True]
    assert [let_in(policy, 100.0) for _ in range(4)] == [True, True, True, False]


def test_a_token_bucket_can_count_tokens_by_tenant():
    policy = TokenBucket(rate_per_s=10.0, burst=300.0, unit="tokens", per_tenant=True)
    one, other = Sent(tenant="one"), Sent(tenant="other")
    assert [let_in(policy, 0, request) for request in (one, one, one, other)] == [True, True, False, True]
    assert [let_in(policy, now_s, one) for now_s in (14.9, 15.0)] == [False, True]


def test_a_leaky_bucket_spaces_requests_out():
    policy = LeakyBucket(rate_per_s=4.0, capacity=1.0)
    assert [let_in(policy, now_s) for now_s in (0.0, 0.1, 0.25, 0.3, 0.5)] == [True, False, True, False, True]


@pytest.mark.parametrize("per_s", [3.0, 7.0, 10.0, 300.0])
@pytest.mark.parametrize("bucket", [TokenBucket, LeakyBucket])
def test_requests_at_exactly_the_rate_of_a_bucket_are_let_in(bucket, per_s):
    exact, faster = (bucket(per_s, 1.0) for _ in range(2))
    assert all(let_in(exact, round(number * 1e9 / per_s) / 1e9) for number in range(1000))
    assert not all(let_in(faster, round(number * (1e9 / per_s - 10)) / 1e9) for number in range(1000))


@pytest.mark.parametrize(
    "policy",
    [
        TokenBucket(10.0, 100.0, unit="tokens"),
        LeakyBucket(10.0, 100.0, unit="tokens"),
        SlidingWindow(100.0, 10.0, unit="tokens"),
    ],
)
def test_a_request_beyond_a_whole_limit_is_told_apart_from_one_that_comes_too_soon(policy):
    half = Sent(prompt_tokens=40, max_output_tokens=20)
    assert policy.rejects(Sent(), Service(), 0.0) == "larger than the rate limit ever allows"
    assert let_in(policy, 0.0, half)
    assert policy.rejects(half, Service(), 0.0) == "over the rate limit"


def test_a_sliding_window_ends_at_its_very_nanosecond():
    policy = SlidingWindow(limit=1, window_s=0.1)
    assert all(let_in(policy, number / 10) for number in range(1000))
    assert not let_in(policy, 99.999999999)
    assert let_in(policy, 100.0)


def test_a_sliding_window_is_never_overfull():
    policy = SlidingWindow(limit=2, window_s=1.0)
    times = (0.0, 0.6, 0.9, 1.0, 1.5, 1.6, 1.7)
    assert [let_in(policy, now_s) for now_s in times] == [True, True, False, True, False, True, False]


def test_watermarks_reject_more_as_memory_fills_up():
    policy = Watermark(low=0.5, high=0.7, critical=0.9, keep_priority=0, short_prompt_tokens=100)
    kinds = {"urgent": Sent(), "long": Sent(prompt_tokens=101), "patient": Sent(priority=1)}
    seen = {
        used: [name for name, request in kinds.items() if let_in(policy, 0, request, Service(kv_used_share=used))]
        for used in (0.49, 0.5, 0.7, 0.9)
    }
    assert seen == {0.49: ["urgent", "long", "patient"], 0.5: ["urgent", "long"], 0.7: ["urgent"], 0.9: []}


def test_a_circuit_breaker_opens_probes_and_closes():
    policy = CircuitBreaker(ttft_s=1.0, slow_share=0.5, window=4, open_s=10.0, probes=2)
    for ttft_s in (0.5, 2.0, 2.0):
        policy.finished(Sent(), ttft_s, 1.0)
    assert let_in(policy, 1.0)
    policy.finished(Sent(), 2.0, 2.0)
    assert not let_in(policy, 11.9)
    assert [let_in(policy, 12.0, Sent(number)) for number in (1, 2, 3)] == [True, True, False]
    policy.finished(Sent(99), 0.1, 12.5)  # let in before it opened: no probe
    policy.finished(Sent(1), 0.1, 13.0)
    assert not let_in(policy, 13.0, Sent(4))
    policy.finished(Sent(2), 0.1, 13.0)
    assert let_in(policy, 13.0, Sent(5))


def test_a_slow_probe_opens_the_circuit_breaker_again():
    policy = CircuitBreaker(ttft_s=1.0, slow_share=0.0, window=1, open_s=10.0, probes=2)
    policy.finished(Sent(), 2.0, 0.0)
    assert let_in(policy, 10.0, Sent(1))
    policy.finished(Sent(1), 2.0, 11.0)
    assert not let_in(policy, 20.9)
    assert let_in(policy, 21.0)


def test_to_a_circuit_breaker_a_request_that_was_given_up_is_a_slow_one():
    policy = CircuitBreaker(ttft_s=1.0, slow_share=0.0, window=1, open_s=10.0, probes=1)
    policy.dropped(Sent(), 0.0)
    assert not let_in(policy, 9.9)
    assert let_in(policy, 10.0, Sent(1))
    policy.dropped(Sent(1), 11.0)
    assert not let_in(policy, 20.9)


@pytest.mark.parametrize(
    ("policy", "arguments", "said"),
    [
        (QueueLimit, {"max_waiting_requests": -1}, "max_waiting_requests is -1"),
        (ConcurrencyLimit, {"max_requests": 0}, "max_requests is 0"),
        (TokenBucket, {"rate_per_s": 0}, "rate_per_s is 0"),
        (LeakyBucket, {"capacity": -1}, "capacity is -1"),
        (SlidingWindow, {"window_s": 0}, "window_s is 0"),
        (Watermark, {"low": 0.9, "high": 0.5}, "low is 0.9"),
        (CircuitBreaker, {"probes": 0}, "probes is 0"),
        (CircuitBreaker, {"slow_share": 1}, "slow_share is 1"),
    ],
)
def test_parameters_out_of_range_are_refused(policy, arguments, said):
    with pytest.raises(ValueError, match=said):
        policy(**arguments)


SCENARIO = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "replicas": 2},
    "memory": {"num_gpu_blocks": 900},
    "workload": {
        "requests": 400,
        "arrivals": {"name": "poisson", "rate_per_s": 60.0},
        "prompt_tokens": {"name": "lognormal", "median": 300, "sigma": 1.0, "max": 3000},
        "output_tokens": {"name": "lognormal", "median": 80, "sigma": 1.0, "max": 800},
        "tenants": [{"name": "one", "share": 0.7, "priority": 1}, {"name": "other", "share": 0.3}],
    },
}


@pytest.mark.parametrize(
    ("admission", "reason"),
    [
        (["watermark"], "KV memory is too full for this priority"),
        ([{"name": "token-bucket", "rate_per_s": 20.0}], "over the rate limit"),
        ([{"name": "queue-limit", "max_waiting_requests": 10}], "the queue is full"),
        ([{"name": "concurrency-limit", "max_requests": 30}, "watermark"], "too many requests in flight"),
        ([{"name": "circuit-breaker", "ttft_s": 0.2, "window": 10, "open_s": 0.5}], "the circuit breaker is open"),
    ],
)
def test_rejections_are_counted_with_their_reason_whether_jumping_or_stepping(admission, reason, tmp_path):
    scenario = SCENARIO | {"scheduler": {"admission": admission, "batching": {"max_running_requests": 16}}}
    simulation = Simulation.prepare(scenario, tmp_path)
    jumping = simulation.run(check=True)
    stepping = Simulation.prepare(scenario, tmp_path).run(fast_forward=False)
    rejected = jumping.summary["counts"]["rejected_by_reason"]
    assert rejected[reason] > 0
    assert sum(rejected.values()) + jumping.summary["counts"]["finished"] == 400
    assert {**jumping.summary, "run": None} == {**stepping.summary, "run": None}


def test_an_unknown_admission_policy_is_refused(tmp_path):
    with pytest.raises(ServetwinError, match=r"scheduler\.admission\.1\.name is 'que-limit'.*'queue-limit'"):
        Simulation.prepare(SCENARIO | {"scheduler": {"admission": ["watermark", "que-limit"]}}, tmp_path)


@pytest.mark.parametrize(
    ("policy", "gold", "others"),
    [
        (TokenBucket(rate_per_s={"gold": 1.0}, burst={"gold": 30.0}), 30, 20),
        (TokenBucket(burst={"gold": 3.0}), 3, 20),
        (LeakyBucket(capacity={"gold": 5.0}), 5, 1),
        (SlidingWindow(limit={"gold": 7.0}), 7, 600),
        (ConcurrencyLimit(max_requests={"gold": 4}), 4, 256),
    ],
)
def test_limits_by_tenant_and_the_default_for_those_not_named(policy, gold, others):
    for tenant, most in (("gold", gold), ("silver", others), ("bronze", others)):
        assert sum(let_in(policy, 0.0, Sent(tenant=tenant)) for _ in range(1000)) == most


def test_a_rate_by_tenant_refills_that_tenants_bucket():
    policy = TokenBucket(rate_per_s={"gold": 20.0, "free": 1.0}, burst=1.0)
    let = {
        tenant: [let_in(policy, second / 10, Sent(tenant=tenant)) for second in range(20)]
        for tenant in ("gold", "free")
    }
    assert sum(let["gold"]) == 20
    assert sum(let["free"]) == 2


@pytest.mark.parametrize("limit", [{"gold": 0}, {"gold": -1.0}])
def test_a_limit_of_a_tenant_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match=r"rate_per_s\.gold"):
        TokenBucket(rate_per_s=limit)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"rate_per_s": {"gould": 20}},
            r"scheduler.admission.0.rate_per_s.gould is an unknown tenant.*Did you mean 'gold'",
        ),
        ({"rate_per_s": {"gold": "x"}}, "rate_per_s"),
        ({"rate_per_s": {"gold": 20}}, None),
        ({"rate_per_s": 20}, None),
    ],
)
def test_limits_by_tenant_in_a_scenario(limits, said, tmp_path):
    document = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "l4"},
        "workload": {
            "requests": 20,
            "arrivals": {"name": "constant", "rate_per_s": 20},
            "prompt_tokens": {"name": "fixed", "tokens": 20},
            "output_tokens": {"name": "fixed", "tokens": 10},
            "tenants": [{"name": "gold", "share": 0.5}, {"name": "free", "share": 0.5}],
        },
        "scheduler": {"admission": [{"name": "token-bucket"} | limits]},
    }
    if said is None:
        Simulation.prepare(document, tmp_path)
        return
    with pytest.raises(ServetwinError, match=said):
        Simulation.prepare(document, tmp_path)


def test_the_least_urgent_are_shed_first():
    policy = PriorityShedding({1: 10, 3: 2})
    let = [
        [let_in(policy, 0.0, Sent(priority=level), Service(waiting)) for level in range(5)] for waiting in (1, 2, 10)
    ]
    assert let == [[True] * 5, [True, True, True, False, False], [True, False, False, False, False]]
