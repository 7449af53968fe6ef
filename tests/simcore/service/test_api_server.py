import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.cost.assumptions import HostOverhead
from simcore.engines import load_engine
from simcore.service.api_server import ApiServer


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


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
def test_a_prompt_that_is_turned_away_is_tokenised_before_the_next(engine, tmp_path):
    """Its 20,000 tokens take what the preset says of each."""
    taken_s = 20_000 * load_engine(engine).host["per_prompt_token_s"]

    def second_ttft_s(first_prompt_tokens):
        rows = ["arrival_s,prompt_tokens,output_tokens", f"0,{first_prompt_tokens},10", "0,100,10"]
        (tmp_path / "two.csv").write_text("\n".join(rows) + "\n")
        document = {
            "model": "llama-3.1-8b",
            "engine": engine,
            "cluster": {"accelerator": "h100-sxm"},
            "workload": {"trace": "two.csv", "format": "csv"},
            "max_context_tokens": 8000,
        }
        requests = Simulation.prepare(document, tmp_path).run().requests
        assert requests["state"].tolist() == ["rejected", "finished"]
        return requests["ttft_s"][1]

    assert second_ttft_s(30_000) - second_ttft_s(10_000) == pytest.approx(taken_s, abs=1e-9)
