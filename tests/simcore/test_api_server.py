from hypothesis import given
from hypothesis import strategies as st

from simcore.api_server import ApiServer
from simcore.cost.assumptions import HostOverhead


def test_prompts_are_tokenised_one_at_a_time():
    api = ApiServer(HostOverhead(request_s=0.010, per_prompt_token_s=1e-6))
    assert api.passes_ns(0, 1000) == 11_000_000
    assert api.passes_ns(0, 1000) == 12_000_000
    assert api.passes_ns(50_000_000, 2000) == 62_000_000


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**5)), min_size=1, max_size=30))
def test_nobody_overtakes_and_nobody_comes_before_arriving(requests):
    api = ApiServer(HostOverhead(request_s=0.002, per_prompt_token_s=3e-6))
    arrivals = sorted(requests)
    passed = [api.passes_ns(*request) for request in arrivals]
    assert passed == sorted(passed)
    assert all(pass_ns >= arrival_ns + 2_000_000 for pass_ns, (arrival_ns, _) in zip(passed, arrivals, strict=True))


def test_without_latency_requests_come_to_the_queue_as_they_arrive():
    assert ApiServer(HostOverhead()).passes_ns(17, 4096) == 17
