"""Whole comparisons: pairing, what they state and what they do not, and that runs are kept and found again."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from scipy.stats import ttest_1samp

from dashboard.page import page
from experiments.comparison import carry_out, evaluate, plan_comparison
from experiments.comparison.compared_metrics import compared_metrics
from experiments.comparison.folder import check_comparison_folder, earlier_looks, write_comparison
from experiments.comparison.pairing import Pairing, pair_up
from experiments.comparison.run_store import RUN, RunStore
from simcore.build.simulation import Simulation
from simcore.core.errors import FileError, InputError, ServetwinError

LIMIT = "scheduler.batching.max_running_requests"
FAIRNESS = ("jain_index", "max_service_difference", "least_slo_attainment")
REPOSITORY = Path(__file__).resolve().parents[3]


def comparison_of(document, vary, folder, seeds=None, base_dir=Path(), **options):
    plan = plan_comparison(document, base_dir, vary, seeds, **options)
    carry_out(plan, folder, jobs=1)
    return evaluate(plan, folder)


def rows_of(comparison):
    return {(row.metric, row.variant): row for row in comparison.rows}


def other_warnings(comparison):
    """All but the one that there are too few seeds."""
    return [text for text in comparison.warnings if not text.startswith("Few seeds")]


def test_too_few_seeds_are_said_with_what_p_values_there_can_be(document, tmp_path):
    comparison = comparison_of(document, {LIMIT: [64, 4, 8]}, tmp_path, 3)
    assert comparison.warnings == (
        "Few seeds: with 3 no p-value can fall below 0.25, before it is adjusted for 2 comparisons; to be below 0.05 "
        "takes at least 7 seeds. Verdicts go by the intervals, which with so few seeds are wide and lean on "
        "differences being about normal.",
    )
    row = rows_of(comparison)["ttft_s.mean", "max_running_requests=4"]
    assert (row.p_value, row.p_holm) == (0.25, 0.5)


def test_the_interval_decides(document, tmp_path):
    comparison = comparison_of(document, {LIMIT: [64, 4, 8, 63]}, tmp_path, 3)
    lower_is_better = {metric.key: metric.lower_is_better for metric in compared_metrics()}
    seen = set()
    for row in comparison.rows:
        if row.low is None or row.variant == comparison.baseline:
            continue
        seen.add(row.verdict)
        if row.verdict == "same":
            assert row.low == row.high == 0
        elif row.verdict == "unclear":
            assert row.low <= 0 <= row.high
        else:
            less = row.high < 0
            assert less or row.low > 0
            assert row.verdict == ("better" if less == lower_is_better[row.metric] else "worse")
    assert seen == {"better", "worse", "unclear", "same"}
    row = rows_of(comparison)["ttft_s.mean", "max_running_requests=4"]
    values = {run["seed"]: run["values"]["ttft_s.mean"] for run in comparison.runs if run["variant"] == row.variant}
    base = {run["seed"]: run["values"]["ttft_s.mean"] for run in comparison.runs if run["variant"].endswith("=64")}
    differences = [values[seed] - base[seed] for seed in comparison.seeds]
    expected = ttest_1samp(differences, 0).confidence_interval(1 - 0.05 / 3)
    assert (row.low, row.high) == pytest.approx((expected.low, expected.high))


def test_values_are_those_of_the_runs(document, tmp_path):
    comparison = comparison_of(document, {LIMIT: [64, 4]}, tmp_path, 6)
    rows = rows_of(comparison)
    assert len(comparison.runs) == 12
    for run in comparison.runs:
        limit = int(run["variant"].partition("=")[2])
        changed = {**document, "seed": run["seed"], "scheduler": {"batching": {"name": "chunked-prefill"}}}
        changed["scheduler"]["batching"]["max_running_requests"] = limit
        summary = Simulation.prepare(changed, Path()).run().summary
        assert run["values"]["ttft_s.p99"] == summary["metrics"]["ttft_s"]["p99"]
        assert run["values"]["goodput_requests_per_s"] == summary["throughput"]["goodput_requests_per_s"]
    for metric in comparison.runs[0]["values"]:
        values = np.array([run["values"][metric] for run in comparison.runs])
        if metric in FAIRNESS:
            assert set(values) == {None}  # there is one tenant
            continue
        one, other = values[:6], values[6:]
        row = rows[metric, "max_running_requests=4"]
        assert row.value == pytest.approx(other.mean())
        assert row.difference == pytest.approx((other - one).mean())
        assert row.pairs == 6
    ttft = rows["ttft_s.mean", "max_running_requests=4"]
    assert ttft.low < ttft.difference < ttft.high
    baseline = rows["ttft_s.mean", "max_running_requests=64"]
    assert (ttft.verdict, baseline.verdict) == ("worse", "baseline")
    assert rows["tpot_s.mean", "max_running_requests=4"].verdict == "better"
    assert ttft.relative_difference == pytest.approx(ttft.difference / baseline.value)


def test_requests_are_kept_with_every_column_variant_and_seed(document, tmp_path):
    comparison_of(document, {LIMIT: [2, 4]}, tmp_path, seeds=2)
    columns = ["variant", "seed", *Simulation.prepare(document, Path()).run().requests]
    kept = [parquet.read_table(file) for file in sorted(tmp_path.glob("*/requests.parquet"))]
    assert all(table.column_names == columns for table in kept)
    of_rows = [set(zip(table["variant"].to_pylist(), table["seed"].to_pylist(), strict=True)) for table in kept]
    assert of_rows == [{(f"max_running_requests={limit}", seed)} for limit in (2, 4) for seed in (0, 1)]
    assert all(table.num_rows == 150 for table in kept)


def test_the_same_requests_make_differences_surer(document, tmp_path):
    comparison = comparison_of(document, {LIMIT: [7, 6]}, tmp_path, 12)
    values = {variant: [] for variant in comparison.variants}
    for run in comparison.runs:
        values[run["variant"]].append(run["values"]["e2e_s.mean"])
    one, other = map(np.array, values.values())
    assert (other - one).std() > 0
    assert (other - one).var(ddof=1) < 0.5 * (one.var(ddof=1) + other.var(ddof=1))


def test_requests_of_sessions_are_paired_though_their_order_depends_on_the_variant(document, tmp_path):
    think_time_s = {"name": "exponential", "mean_s": 0.1}
    turns = {"name": "fixed", "tokens": 5}
    document["workload"]["session"] = {"name": "chat", "turns": turns, "think_time_s": think_time_s}
    plan = plan_comparison(document, Path(), {LIMIT: [7, 1]}, 1)
    carry_out(plan, tmp_path, jobs=1)
    one, other = (RunStore(tmp_path).record(run) for run in plan.runs)
    assert np.argsort(one.requests["arrival_s"]).tolist() != np.argsort(other.requests["arrival_s"]).tolist()
    assert pair_up(one, other) == Pairing(same_requests=True, same_arrivals=False, finished_in_one=0)


@pytest.mark.parametrize("seeds", [1, 4])
def test_variants_that_do_the_same_differ_by_exactly_nothing(document, tmp_path, seeds):
    comparison = comparison_of(document, {LIMIT: [2000, 3000]}, tmp_path, seeds)
    rows = [row for row in comparison.rows if row.variant != comparison.baseline and row.value is not None]
    assert {row.difference for row in rows} == {0.0}
    tested = [row for row in rows if row.p_value is not None]
    found = {(row.low, row.high, row.p_value, row.p_holm, row.verdict) for row in tested}
    assert found == {(0.0, 0.0, 1.0, 1.0, "same")}
    untested = {row.metric for row in rows} - {row.metric for row in tested}
    if seeds > 1:
        assert untested == set()
    else:
        # A P99 needs 500 requests; rates, shares and costs have no interval within one run.
        rates = {"requests_per_s", "goodput_requests_per_s", "slo_attainment", "prefix_hit_rate"}
        rates |= {"usd_per_h", "usd_per_million_output_tokens", "joules_per_output_token"}
        assert untested == rates | {"ttft_s.p99", "tpot_s.p99", "e2e_s.p99"}


def test_p_values_are_adjusted_for_the_number_of_variants(document, tmp_path):
    comparison = comparison_of(document, {LIMIT: [64, 8, 7, 6]}, tmp_path, 4)
    rows = [row for row in comparison.rows if row.metric == "e2e_s.mean" and row.p_value is not None]
    assert len(rows) == 3
    ordered = sorted(rows, key=lambda row: row.p_value)
    assert ordered[0].p_holm == pytest.approx(min(1, 3 * ordered[0].p_value))
    assert ordered[2].p_holm >= max(ordered[1].p_holm, ordered[2].p_value)
    assert "widened for 3 comparisons" in comparison.method


def test_one_seed_says_that_between_seeds_nothing_is_known(document, tmp_path):
    document["workload"]["requests"] = 600
    comparison = comparison_of(document, {LIMIT: [64, 8]}, tmp_path, 1)
    assert comparison.warnings[0].startswith("One seed: how differences vary from one stream")
    assert "paired bootstrap over requests" in comparison.method
    rows = rows_of(comparison)
    for metric in ("ttft_s.mean", "e2e_s.p99", "normalised_latency_s.mean"):
        row = rows[metric, "max_running_requests=8"]
        assert row.low < row.difference < row.high
        assert row.pairs == 1
    assert rows["requests_per_s", "max_running_requests=8"].low is None
    assert rows["requests_per_s", "max_running_requests=8"].verdict == "untested"


def test_results_do_not_depend_on_the_number_of_jobs(document, tmp_path):
    plan = plan_comparison(document, Path(), {LIMIT: [64, 4]}, 2)
    told = {1: [], 3: []}
    texts = []
    for jobs, names in told.items():
        carry_out(plan, tmp_path / str(jobs), jobs, lambda run, names=names: names.append(run.name))
        texts.append(json.dumps(evaluate(plan, tmp_path / str(jobs)).document()))
    assert texts[0] == texts[1]
    assert sorted(told[1]) == sorted(told[3]) == sorted(run.name for run in plan.runs)
    with pytest.raises(InputError, match="--jobs is 0"):
        carry_out(plan, tmp_path / "none", 0)


def test_runs_that_are_there_are_used_again_and_others_replaced(document, tmp_path):
    plan = plan_comparison(document, Path(), {LIMIT: [64, 4]}, 2)
    assert carry_out(plan, tmp_path, 1) == 0
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob(RUN)}
    assert len(written) == 4
    more = plan_comparison(document, Path(), {LIMIT: [64, 4, 8]}, 3)
    assert carry_out(more, tmp_path, 1) == 4
    assert {path: path.stat().st_mtime_ns for path in written} == written
    document["workload"]["requests"] = 100
    changed = plan_comparison(document, Path(), {LIMIT: [64, 4]}, 2)
    assert len(evaluate(changed, tmp_path).missing) == 4
    assert carry_out(changed, tmp_path, 1) == 0
    assert not evaluate(changed, tmp_path).missing
    (tmp_path / plan.runs[0].name / RUN).write_text('{\n  "fingerprint": "')
    assert carry_out(changed, tmp_path, 1) == 3


def test_what_is_missing_is_said_and_nothing_called_significant(document, tmp_path):
    plan = plan_comparison(document, Path(), {LIMIT: [64, 4]}, 3)
    carry_out(plan, tmp_path, 1)
    (tmp_path / plan.runs[3].name / RUN).unlink()
    comparison = evaluate(plan, tmp_path)
    assert comparison.missing == (("max_running_requests=4", 1),)
    assert comparison.warnings[0].startswith("Interrupted: 1 of 6 runs are missing (max_running_requests=4 seed 1).")
    assert comparison.document()["complete"] is False
    row = rows_of(comparison)["ttft_s.mean", "max_running_requests=4"]
    assert (row.pairs, row.p_value, row.p_holm, row.verdict) == (2, None, None, "untested")
    assert row.low is not None
    assert comparison.looks == ()
    for run in plan.runs:
        (tmp_path / run.name / RUN).unlink(missing_ok=True)
    assert {row.value for row in evaluate(plan, tmp_path).rows} == {None}


def test_adding_seeds_after_having_looked_is_said(document, tmp_path):
    for seeds, looks in ((2, (2,)), (3, (2, 3)), (3, (2, 3))):
        plan = plan_comparison(document, Path(), {LIMIT: [64, 4]}, seeds)
        carry_out(plan, tmp_path / "runs", 1)
        comparison = evaluate(plan, tmp_path / "runs", earlier_looks(plan, tmp_path))
        write_comparison(comparison, tmp_path, page("a report", ""))
        assert comparison.looks == looks
        assert any("Results with 2 seeds were seen here" in text for text in comparison.warnings) == (seeds == 3)
    other = plan_comparison({**document, "max_context_tokens": 500}, Path(), {LIMIT: [64, 4]}, 3)
    assert earlier_looks(other, tmp_path) == ()


def test_requests_that_are_not_the_same_or_come_at_other_times_are_said(document, tmp_path):
    comparison = comparison_of(document, {"workload.arrivals.rate_per_s": [120, 60]}, tmp_path / "rate", 2)
    assert other_warnings(comparison) == []
    assert "The requests of rate_per_s=120, but at other times" in comparison.notices[0]
    comparison = comparison_of(document, {"workload.prompt_tokens.high": [90, 30]}, tmp_path / "prompts", 1)
    assert any(text.startswith("Not the same requests as high=90: high=30.") for text in comparison.warnings)
    assert {row.low for row in comparison.rows} == {None}


def test_requests_that_only_one_variant_finishes_are_said(document, tmp_path):
    comparison = comparison_of(document, {"max_context_tokens": [1000, 80]}, tmp_path, 2)
    rejected = rows_of(comparison)["rejected", "max_context_tokens=80"]
    assert rejected.difference > 0
    (warning,) = other_warnings(comparison)
    unmatched = f"{2 * rejected.value:.0f} requests were finished by only one of max_context_tokens=80 and"
    assert warning.startswith(unmatched)


def test_metrics_can_be_chosen_and_undefined_ones_stay_empty(document, tmp_path):
    del document["slo"]
    chosen = ["itl_s.p50", "goodput_requests_per_s", "unfinished"]
    comparison = comparison_of(document, {LIMIT: [64, 4]}, tmp_path, 2, metrics=chosen)
    assert list(dict.fromkeys(row.metric for row in comparison.rows)) == chosen
    goodput = [row for row in comparison.rows if row.metric == "goodput_requests_per_s"]
    assert {(row.value, row.difference, row.verdict) for row in goodput} == {
        (None, None, "baseline"),
        (None, None, "untested"),
    }
    assert [rows[0].metric for rows in comparison.by_metric()] == ["itl_s.p50", "unfinished"]
    table = comparison.table
    assert {len(column) for column in table.values()} == {6}
    assert np.isnan(table["value"][2])
    assert table["variant"][1] == "max_running_requests=4"


def test_every_metric_has_a_value_that_json_can_hold(document, tmp_path):
    stream = document["workload"]
    document["workload"] = {"streams": [stream | {"tenant": "a"}, stream | {"tenant": "b", "requests": 40}]}
    comparison = comparison_of(
        document, {LIMIT: [64, 4]}, tmp_path, 2, metrics=[metric.key for metric in compared_metrics()]
    )
    assert {type(row.value) for row in comparison.rows if row.metric != "prefix_hit_rate"} == {float}
    rows = rows_of(comparison)
    for key in ("jain_index", "least_slo_attainment"):
        assert 0 < rows[key, "max_running_requests=4"].value < 1
    assert json.loads(json.dumps(comparison.document(), allow_nan=False)) == comparison.document()


def test_curves_are_the_distributions_over_all_seeds(document, tmp_path):
    comparison = comparison_of(document, {LIMIT: [64, 4]}, tmp_path, 2)
    ttft_s = []
    for seed in (0, 1):
        changed = {**document, "seed": seed, "scheduler": {"batching": {"name": "chunked-prefill"}}}
        changed["scheduler"]["batching"]["max_running_requests"] = 4
        ttft_s.append(Simulation.prepare(changed, Path()).run().requests["ttft_s"])
    curve = comparison.curves["ttft_s"]["max_running_requests=4"]
    assert curve.values_s == pytest.approx(np.quantile(np.concatenate(ttft_s), curve.shares))
    assert (curve.shares[0], curve.shares[-1]) == (0, 1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_fails_is_named_and_the_finished_ones_are_kept(document, tmp_path, jobs):
    # The second variant takes more than the 292 years that the clock holds, which shows only as it runs.
    document["workload"] |= {"arrivals": {"name": "closed-loop", "concurrency": 1, "think_time_s": 0.0}}
    plan = plan_comparison(document, Path(), {"workload.arrivals.think_time_s": [0.0, 1e8]}, 1)
    with pytest.raises(ServetwinError, match=r"think_time_s=100000000.0, seed 0: The run would go on"):
        carry_out(plan, tmp_path, jobs)
    assert evaluate(plan, tmp_path).missing[-1] == ("think_time_s=100000000.0", 0)


def test_a_plain_script_can_use_several_processes(tmp_path, document):
    # Without a guard for __main__, which processes that import the script again would need.
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from experiments.comparison import carry_out, evaluate, plan_comparison\n"
        f"plan = plan_comparison({document!r}, Path(), {{{LIMIT!r}: [64, 4]}}, 1)\n"
        f"carry_out(plan, Path({str(tmp_path / 'runs')!r}), 2)\n"
        f"print(len(evaluate(plan, Path({str(tmp_path / 'runs')!r})).missing))\n"
    )
    path = {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, env=path, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)


def test_only_the_folder_of_a_comparison_is_written_to(document, tmp_path):
    check_comparison_folder(tmp_path)
    check_comparison_folder(tmp_path / "new" / "newer")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="holds 'file', which is no part of a comparison"):
        check_comparison_folder(tmp_path)
    with pytest.raises(FileError, match="is no folder"):
        check_comparison_folder(tmp_path / "file" / "new")
