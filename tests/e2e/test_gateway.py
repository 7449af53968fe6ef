"""What a gateway does for requests beside routing them, in whole runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from simcore.service.client_timeouts import NO_FIRST_TOKEN
from tests.e2e.outcomes import with_one_outcome_each
from tests.e2e.scenarios import differences, merged, run, synthetic
from tests.e2e.test_crashes import SCENARIO
from tests.e2e.test_crashes import scenarios as faulty_scenarios

TWO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4", "replicas": 2, "routing": "round-robin"},
    "host": {"request_s": 0.0, "per_prompt_token_s": 0.0},
    "scheduler": {"batching": {"max_running_requests": 1}},
}
LONG, SHORT = 400, 5


def queue_of(rows, folder):
    """A trace of (arrival, prompt, output)."""
    lines = ["arrival_s,prompt_tokens,output_tokens", *(",".join(map(str, row)) for row in rows)]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return {"trace": "rows.csv", "format": "csv"}


def both(scenario, folder):
    """The result, which must be the same by jumps and step by step."""
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    return jumping


def test_a_copy_runs_where_there_is_room_and_the_first_to_answer_goes_on(tmp_path):
    # Request 2 is behind the long request 0; its copy, sent after 0.1 s, runs on replica 1, which is idle by then.
    workload = queue_of([(0.0, 100, LONG), (0.0, 100, SHORT), (0.01, 100, SHORT)], tmp_path)
    hedged = TWO | {"workload": workload, "gateway": {"hedging": {"name": "fixed-delay", "after_s": 0.1}}}
    plain, result = run(TWO | {"workload": workload}, tmp_path), both(hedged, tmp_path)
    assert plain.requests["replica"].tolist() == [0, 1, 0]
    assert result.requests["replica"].tolist() == [0, 1, 1]
    assert result.summary["gateway"]["hedges"] == {"sent": 1, "won": 1}
    assert result.requests["first_scheduled_s"][2] == pytest.approx(0.11)
    assert result.requests["e2e_s"][0] == plain.requests["e2e_s"][0]
    assert result.summary["counts"]["finished"] == 3


def test_a_copy_that_loses_is_withdrawn_and_counts_nowhere(tmp_path):
    # Both replicas are busy; the original gets its turn first, and the copy never runs.
    rows = [(0.0, 100, 200), (0.0, 100, 300), (0.01, 100, SHORT), (0.02, 100, SHORT)]
    hedging = {"hedging": {"name": "fixed-delay", "after_s": 0.1}}
    result = both(TWO | {"workload": queue_of(rows, tmp_path), "gateway": hedging}, tmp_path)
    assert result.summary["gateway"]["hedges"]["sent"] == 2
    assert result.summary["counts"]["arrived"] == result.summary["counts"]["finished"] == 4
    assert result.requests["replica"].tolist() == [0, 1, 0, 0]
    assert result.summary["metrics"]["itl_s"]["count"] == result.requests["output_tokens"].sum() - 4


def test_copies_wait_for_the_percentile_of_those_before(tmp_path):
    workload = synthetic({"name": "poisson", "rate_per_s": 40.0}, (20, 400), (1, 60), requests=400)
    gateway = {"hedging": {"name": "percentile-delay", "percent": 90.0, "window": 100}}
    result = run(
        TWO | {"workload": workload, "gateway": gateway, "cluster": TWO["cluster"] | {"replicas": 4}}, tmp_path
    )
    assert 10 < result.summary["gateway"]["hedges"]["sent"] < 120
    assert result.summary["counts"]["finished"] == 400


def test_a_slow_replica_is_ejected_and_comes_back(tmp_path):
    slow = {"name": "slow-gpu", "replica": 2, "at_s": 0.0, "for_s": 4.0, "factor": 60.0}
    workload = synthetic({"name": "poisson", "rate_per_s": 60.0}, (20, 400), (1, 20), requests=600)
    ejection = {"name": "consecutive-failures", "failures": 3, "ttft_s": 0.08, "base_s": 2.0}
    scenario = SCENARIO | {"workload": workload, "faults": [slow]}
    plain = run(scenario, tmp_path)
    result = both(scenario | {"gateway": {"ejection": ejection}}, tmp_path)
    out = result.summary["gateway"]["ejections"]
    assert {event["replica"] for event in out} == {2}
    first = out[0]
    assert first["until_s"] - first["at_s"] == pytest.approx(2.0)
    requests = result.requests
    # prompts are tokenised before they are sent
    meanwhile = (requests["arrival_s"] > first["at_s"]) & (requests["arrival_s"] < first["until_s"] - 0.05)
    assert (requests["replica"][meanwhile] != 2).all()
    assert (requests["replica"][requests["arrival_s"] > out[-1]["until_s"]] == 2).any()
    p99s = [each.summary["metrics"]["ttft_s"]["p99"] for each in (result, plain)]
    assert p99s[0] < p99s[1]


def test_no_more_than_the_stated_share_is_out_at_once(tmp_path):
    ejection = {"name": "consecutive-failures", "failures": 1, "ttft_s": 1e-9, "base_s": 1000.0, "most_share": 0.4}
    result = run(SCENARIO | {"gateway": {"ejection": ejection}}, tmp_path)
    assert len(result.summary["gateway"]["ejections"]) == 1
    assert result.summary["counts"]["finished"] == 100


def test_outputs_are_shorter_while_many_wait(tmp_path):
    rows = [(0.0, 100, 50) for _ in range(10)]
    limit = {"output_limit": {"name": "by-queue", "waiting_requests": 4, "tokens": 7}}
    result = both(TWO | {"workload": queue_of(rows, tmp_path), "gateway": limit}, tmp_path)
    assert result.requests["output_tokens"].tolist() == [50] * 4 + [7] * 6
    assert result.summary["gateway"] == {"shortened_requests": 6, "cut_tokens": 6 * 43}


def test_clients_that_are_turned_away_come_again(tmp_path):
    rows = [(0.0, 100, 50) for _ in range(6)]
    limited = merged(TWO, {"scheduler": {"admission": [{"name": "concurrency-limit", "max_requests": 2}]}})
    retries = {"attempts": 50, "delay_s": 0.05, "of_rejected": True}
    scenario = limited | {"workload": queue_of(rows, tmp_path)}
    assert run(scenario, tmp_path).summary["counts"]["rejected"] == 4
    result = both(scenario | {"retries": retries}, tmp_path)
    assert result.summary["counts"]["finished"] == 6
    assert result.summary["gateway"]["retries"] >= 4
    spent = run(scenario | {"retries": retries | {"budget_share": 0.1, "budget_least": 0}}, tmp_path)
    assert spent.summary["gateway"]["retries"] == 1


def test_a_client_that_waits_too_long_asks_again_and_may_be_served_elsewhere(tmp_path):
    # Request 2 is behind the long request 0. After 0.1 s it comes again, to replica 1 in turn, which is idle by then.
    rows = [(0.0, 100, LONG), (0.0, 100, SHORT), (0.01, 100, SHORT)]
    workload = queue_of(rows, tmp_path) | {"first_token_timeout_s": 0.1}
    gives_up = run(TWO | {"workload": workload}, tmp_path)
    assert gives_up.summary["counts"]["rejected_by_reason"] == {NO_FIRST_TOKEN: 1}
    retries = {"attempts": 2, "of_timeouts": True}
    result = both(TWO | {"workload": workload, "retries": retries}, tmp_path)
    requests = result.requests
    assert requests["replica"].tolist() == [0, 1, 1]
    assert requests["first_scheduled_s"][2] == pytest.approx(0.11, abs=0.002)
    assert result.summary["gateway"] == {"retries": 1}
    assert result.summary["counts"]["finished"] == 3


def test_each_time_a_client_waits_as_long_until_its_attempts_are_used_up(tmp_path):
    alone = merged(TWO, {"cluster": {"replicas": 1}})
    rows = [(0.0, 100, 2000), (0.01, 100, SHORT)]
    workload = queue_of(rows, tmp_path) | {"first_token_timeout_s": 0.1}
    retries = {"attempts": 2, "of_timeouts": True, "delay_s": 0.05, "backoff": 2.0}
    requests = both(alone | {"workload": workload, "retries": retries}, tmp_path).requests
    assert requests["reason"][1] == NO_FIRST_TOKEN
    assert requests["end_s"][1] == pytest.approx(0.01 + 0.1 + 0.05 + 0.1 + 0.1 + 0.1, abs=0.01)


def test_who_waits_at_the_gateway_goes_where_there_is_room_first(tmp_path):
    # Both replicas are busy until request 1 is done; then 2 and 3 go to its replica, in their order.
    rows = [(0.0, 100, LONG), (0.0, 100, SHORT), (0.001, 100, SHORT), (0.002, 100, SHORT)]
    gateway = {"most_open_requests": 1}
    result = both(TWO | {"workload": queue_of(rows, tmp_path), "gateway": gateway}, tmp_path)
    requests = result.requests
    assert requests["replica"].tolist() == [0, 1, 1, 1]
    assert requests["first_scheduled_s"][2:].tolist() == requests["end_s"][1:3].tolist()
    assert result.summary["gateway"] == {"queued_requests": 2}


@st.composite
def guarded_scenarios(draw):
    """Scenarios in which things go wrong behind a gateway that does all it can."""
    scenario = draw(faulty_scenarios())
    hedging = [{"name": "fixed-delay", "after_s": 0.02}, {"name": "percentile-delay", "percent": 50.0, "window": 5}]
    ejection = [
        {"name": "consecutive-failures", "failures": 2, "ttft_s": 0.05, "base_s": 0.1},
        {"name": "latency-outlier", "times": 1.5, "window": 3, "eject_s": 0.1, "failed_s": 0.3},
    ]
    limit = [{"name": "by-queue", "waiting_requests": 2, "tokens": 10}]
    gateway = {"hedging": draw(st.sampled_from(hedging)), "ejection": draw(st.sampled_from(ejection))}
    return scenario | {
        "gateway": gateway | draw(st.sampled_from([{}, {"output_limit": limit[0]}, {"most_open_requests": 3}])),
        "retries": scenario["retries"]
        | {"of_rejected": draw(st.booleans()), "of_timeouts": draw(st.booleans()), "delay_s": 0.05},
        "workload": scenario["workload"] | draw(st.sampled_from([{}, {"first_token_timeout_s": 0.06}])),
        "scheduler": scenario["scheduler"]
        | {"admission": draw(st.sampled_from([[], [{"name": "priority-shedding", "waiting_requests": {0: 3}}]]))},
    }


@settings(max_examples=25, deadline=None)
@given(guarded_scenarios())
def test_each_request_has_one_outcome_whatever_is_done_for_it(tmp_path_factory, scenario):
    simulation, cluster, result = with_one_outcome_each(scenario, tmp_path_factory.getbasetemp())
    hedges = result.summary["gateway"]["hedges"]
    assert 0 <= hedges["won"] <= hedges["sent"]
    if "end_s" not in scenario["measurement"]:
        for batch in cluster.batches:
            assert not batch.requests.by_number
            assert not batch.awaited
            assert batch.is_dead or not batch.scheduler.memory.used_blocks

    assert not differences(result, simulation.run())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gateway": {"hedging": "fixed-delai"}}, r"gateway\.hedging\.name is 'fixed-delai'.*fixed-delay"),
        ({"gateway": {"hedging": "fixed-delay"}, "cluster": {"accelerator": "l4"}}, "since there is one replica"),
        (
            {"gateway": {"hedging": "fixed-delay"}, "workload": SCENARIO["workload"] | {"samples": 2}},
            "samples of a request stay together",
        ),
    ],
)
def test_what_no_gateway_can_do_is_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        Simulation.prepare(SCENARIO | changes, tmp_path)


@st.composite
def elastic_scenarios(draw):
    """The same over replicas that come and go, on spot instances."""
    scenario = draw(guarded_scenarios())
    policies = [{"name": "queue", "requests_per_replica": 4}, {"name": "utilisation"}]
    scaling = {
        "policy": draw(st.sampled_from(policies)),
        "min_replicas": 1,
        "max_replicas": 3,
        "interval_s": 0.05,
        "in_wait_s": draw(st.sampled_from([0.0, 0.3])),
        "start": {"boot_s": 0.05, "compile_s": 0.05, "warm_up_s": 0.0, "read_gb_per_s": 100.0},
    }
    spot = {"notice_s": draw(st.sampled_from([0.0, 0.1])), "reclaimed": [{"replica": 0, "at_s": 0.4}]}
    cluster = {"accelerator": "l4", "replicas": 1, "routing": scenario["cluster"]["routing"], "scaling": scaling}
    return scenario | {"cluster": cluster | draw(st.sampled_from([{}, {"spot": spot}]))}


@settings(max_examples=20, deadline=None)
@given(elastic_scenarios())
def test_each_request_has_one_outcome_while_replicas_come_and_go(tmp_path_factory, scenario):
    _, cluster, _ = with_one_outcome_each(scenario, tmp_path_factory.getbasetemp())
    if "end_s" not in scenario["measurement"]:
        for batch in cluster.batches:
            assert not batch.requests.by_number
            assert batch.is_dead or not batch.scheduler.memory.used_blocks
