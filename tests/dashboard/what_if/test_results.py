"""What pages make of results: differences, shares of time, estimates, and runs read back from their folders."""

from pathlib import Path

import numpy as np
import pytest

from dashboard.what_if.curves import curve_of
from dashboard.what_if.differences import differences
from dashboard.what_if.estimates import estimate, mean_lengths, request_count
from dashboard.what_if.setups import default_pair, with_value
from dashboard.what_if.time_shares import step_shape, time_shares
from experiments.comparison import plan_comparison
from experiments.comparison.evaluation import evaluate
from experiments.comparison.execution import carry_out
from simcore.build.simulation import Simulation
from simcore.core.errors import FileError
from simcore.metrics.distribution import cumulative_points
from simcore.metrics.registry import latency
from simcore.output.run_folder import read_run_folder, write_run_folder

DOCUMENT = with_value(default_pair().document("A"), "workload.requests", 400)


@pytest.fixture(scope="module")
def simulation():
    return Simulation.prepare(DOCUMENT, Path())


@pytest.fixture(scope="module")
def result(simulation):
    return simulation.run()


@pytest.fixture(scope="module")
def faster():
    return Simulation.prepare(with_value(DOCUMENT, "cluster.replicas", 2), Path()).run()


def test_differences_are_those_of_compare(result, faster, tmp_path):
    keys = ["ttft_s.p50", "tpot_s.p50", "e2e_s.p50", "requests_per_s", "preemptions"]
    plan = plan_comparison(DOCUMENT, Path(), {"cluster.replicas": [1, 2]}, 1, None, keys)
    carry_out(plan, tmp_path, 1)
    expected = {row.metric: row for row in evaluate(plan, tmp_path).rows if row.verdict != "baseline"}
    shown = {row.metric: row for _, row in differences(result, faster) if row.metric in keys}
    for key, row in expected.items():
        for name in ("value", "difference", "low", "high", "relative_difference", "p_value", "verdict"):
            assert getattr(shown[key], name) == getattr(row, name), (key, name)


def test_other_requests_leave_no_interval(result):
    other = Simulation.prepare(DOCUMENT | {"seed": 5}, Path()).run()
    assert {row.low for _, row in differences(result, other)} == {None}


def test_shares_of_time_add_up(result, two_replicas):
    assert sum(time_shares(result).values()) == pytest.approx(1)
    shares = time_shares(two_replicas)  # 10 s of two replicas: 1 s and 0.5 s of prompts, 9 s and 2 s of decodes
    assert shares == pytest.approx({"decode": 0.55, "mixed": 0, "prefill": 0.075, "idle": 0.375})


def test_the_typical_step_is_weighted_by_time(two_replicas):
    decode, prompt = step_shape(two_replicas)
    assert (decode.decodes, decode.context_tokens, prompt.chunks) == (1, 83, ((100, 0),))


def test_estimates_are_bounds_and_fit_the_memory(simulation, result):
    found = estimate(simulation)
    assert found.requests == 400 == request_count(simulation.workload)
    assert mean_lengths(simulation.workload) == (found.prompt_tokens, found.output_tokens)
    assert found.weight_bytes + found.other_bytes + found.kv_bytes < found.device_bytes
    assert found.least_ttft_s < found.alone_ttft_s < result.summary["metrics"]["ttft_s"]["mean"]
    assert found.least_tpot_s < found.alone_tpot_s < result.summary["metrics"]["tpot_s"]["mean"]
    assert result.summary["throughput"]["output_tokens_per_s"] < found.most_tokens_per_s
    assert 0 < found.error < 0.2
    assert 0.5 < found.measured_share <= 1


def test_a_lone_request_is_simulated_as_one(simulation):
    found = estimate(simulation)
    alone = DOCUMENT | {
        "workload": {
            "requests": 1,
            "arrivals": {"name": "poisson", "rate_per_s": 3.0},
            "prompt_tokens": {"name": "fixed", "tokens": found.prompt_tokens},
            "output_tokens": {"name": "fixed", "tokens": found.output_tokens},
        }
    }
    metrics = Simulation.prepare(alone, Path()).run().summary["metrics"]
    assert (metrics["ttft_s"]["mean"], metrics["tpot_s"]["mean"]) == (found.alone_ttft_s, found.alone_tpot_s)


def test_without_measured_kernels_no_error_is_claimed():
    document = with_value(DOCUMENT, "pricing.profile", "roofline")
    found = estimate(Simulation.prepare(document, Path()))
    assert (found.error, found.measured_share) == (None, 0)


def test_the_curve_is_that_of_the_report(result):
    curve = curve_of(result, latency("ttft_s"))
    assert np.array_equal(curve.values_s, cumulative_points(result.requests["ttft_s"])["value_s"])


def test_a_run_folder_is_read_back(result, tmp_path):
    write_run_folder(result, tmp_path / "run")
    read = read_run_folder(tmp_path / "run")
    assert (read.scenario, read.summary) == (result.scenario, result.summary)
    for name in ("requests", "steps"):
        ours, theirs = getattr(read, name), getattr(result, name)
        assert list(ours) == list(theirs)
        for column, values in theirs.items():
            assert np.array_equal(ours[column], values, equal_nan=values.dtype.kind == "f"), column


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("summary.json", "{}"),
        ("summary.json", "no json"),
        ("summary.json", '{"metrics": {}, "schema_version": 99}'),
        ("scenario.yaml", "- 1"),
        ("requests.parquet", "no table"),
    ],
)
def test_a_broken_run_folder_is_refused(name, content, result, tmp_path):
    write_run_folder(result, tmp_path / "run")
    (tmp_path / "run" / name).write_text(content)
    with pytest.raises(FileError):
        read_run_folder(tmp_path / "run")
