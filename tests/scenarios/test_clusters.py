"""The scenarios of clusters show what the guide says of them."""

from pathlib import Path

from simcore.build.simulation import Simulation
from simcore.scenario import read_scenario
from simcore.scenario.reading import override

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
FEWER = "workload.requests=600"
MIXED = "cluster={accelerator: h100-sxm, replicas: 4, routing: least-requests}"


def result_of(name, *changes):
    return Simulation.prepare(override(read_scenario(SCENARIOS / f"{name}.yaml"), changes), SCENARIOS).run()


def test_a_pair_spares_tokens_the_prompts_of_others():
    apart = result_of("disaggregated-pair", FEWER)
    mixed = result_of("disaggregated-pair", FEWER, MIXED)
    gaps_s = [result.summary["metrics"]["itl_s"]["p99"] for result in (apart, mixed)]
    assert gaps_s[0] < 0.3 * gaps_s[1]
    assert apart.summary["cost"]["usd_per_h"] == mixed.summary["cost"]["usd_per_h"]


def test_a_lost_node_costs_its_requests_time_and_nobody_an_answer():
    result = result_of("node-loss-at-noon")
    requests, figures = result.requests, result.summary["faults"]
    assert result.summary["counts"]["finished"] == result.summary["counts"]["arrived"]
    assert figures["interrupted_requests"] > 10
    again = requests["preemptions"] > 0
    assert again.sum() > 10
    assert requests["tpot_s"][again].mean() > 1.2 * requests["tpot_s"][~again].mean()


def test_a_canary_is_found_better_and_the_others_follow_without_an_interruption():
    result = result_of("rolling-canary", "workload.requests=2500")
    canary, (update,) = result.summary["groups"]["canary"], result.summary["updates"]
    assert result.summary["counts"]["finished"] == 2500
    assert canary["verdict"] == "better"
    assert canary["ttft_s_difference"]["high"] < 0
    assert update["updated_replicas"] == 6
    assert not result.requests["preemptions"].any()
