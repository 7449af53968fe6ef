"""From a measured engine run to the scenario that repeats it."""

import csv
from dataclasses import replace

import pytest

from fidelity.case import Case, Outcome, Refusal
from fidelity.engine_runs import read_engine_runs
from fidelity.execution import simulate_case
from fidelity.harness import case_of
from simcore.build.simulation import Simulation
from tests.fidelity.engine_run_rows import QWEN35, case


@pytest.mark.parametrize(("stated", "precision"), [("bfloat16", "bf16"), ("float16", "fp16")])
def test_formats_may_be_written_out(tmp_path, stated, precision):
    assert case(tmp_path, gemm_quant_mode=stated).labels["precision"] == precision


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "disagg", "batch_size": ""}, "disaggregated prefill and decode"),
        ({"mode": "odd"}, "unknown mode odd"),
        ({"model_path": "some/Model"}, "unknown model some/Model"),
        ({"backend": "other"}, "unknown engine other"),
        ({"system": "x9"}, "unknown accelerator x9"),
        ({"moe_ep_size": "8"}, "experts split over 8 of 2 devices"),
        ({"moe_tp_size": "2", "moe_ep_size": "2"}, "experts split over 4 of 2 devices"),
        ({"gemm_quant_mode": "nvfp4"}, "precision nvfp4 on h200-sxm, which does not multiply in 4 bits"),
        ({"gemm_quant_mode": "int8_wo"}, "precision int8_wo"),
        (
            {"model_path": "zhipuai/GLM-5"},
            "zhipuai/GLM-5 has attention to tokens that an indexer chooses, which is not modelled",
        ),
        ({"tp_size": "12"}, "more devices than an engine of a known script"),
        ({"batch_size": "2"}, "a concurrency that several workers share"),
        ({"batch_size": "", "silicon_data_source": "gap"}, "no concurrency stated"),
    ],
)
def test_a_row_that_cannot_be_simulated_says_why(tmp_path, change, reason):
    found = case(tmp_path, **change)
    assert isinstance(found, Refusal)
    assert found.reason == reason


def test_a_row_of_the_known_harness_is_run_as_it_was(tmp_path):
    found = case(tmp_path)
    assert isinstance(found, Case)
    scenario = Simulation.prepare(found.document, tmp_path).scenario
    assert scenario.scheduler.batching["max_running_requests"] == 4
    assert scenario.scheduler.batching["max_batched_tokens"] == 8192
    assert scenario.precision.weights == scenario.precision.kv_cache == "fp8"
    assert not scenario.memory.prefix_caching
    workload = found.document["workload"]
    assert workload["requests"] == 40
    assert workload["arrivals"] == {"name": "closed-loop", "concurrency": 4}
    assert workload["prompt_tokens"] == {"name": "uniform", "low": 819, "high": 1024}
    assert found.measured == {"ttft_s.mean": 0.1, "tpot_s.mean": 0.02}


def test_a_row_of_an_unknown_harness_is_run_as_a_public_tool_would(tmp_path):
    found = case(tmp_path, silicon_data_source="source_file=gap.csv", gemm_quant_mode="")
    assert isinstance(found, Case)
    assert found.labels["harness"] == "unknown"
    workload = found.document["workload"]
    assert workload["prompt_tokens"] == workload["output_tokens"] == {"name": "fixed", "tokens": 1024}
    assert workload["requests"] == 40
    assert found.document["precision"] == {"weights": "bf16", "kv_cache": "bf16"}
    batching = {"max_running_requests": 4, "max_batched_tokens": 4 + 1024 + 1500}
    assert found.document["scheduler"] == {"batching": batching}


def test_bands_of_an_unknown_harness_are_drawn_over_setups(tmp_path):
    found = case(tmp_path, silicon_data_source="source_file=gap.csv")
    assert isinstance(found, Case)
    scenarios = [Simulation.prepare(document, tmp_path).scenario for document in found.plausible]
    assert [scenario.scheduler.batching["max_batched_tokens"] for scenario in scenarios] == [
        8192,
        4 + 1024 + 1500,
        8192,
    ]
    assert [scenario.host.step_s > 5e-4 for scenario in scenarios] == [False, True, True]
    assert len({scenario.host.launch_s for scenario in scenarios}) == 1
    assert all(scenario.precision.kv_cache == "fp8" for scenario in scenarios)
    narrow, wide = simulate_case(replace(found, plausible=()), 9), simulate_case(found, 9)
    assert isinstance(narrow, Outcome)
    assert isinstance(wide, Outcome)
    assert narrow.simulated == wide.simulated
    low, high = wide.bands["tpot_s.mean"]
    assert high / low > narrow.bands["tpot_s.mean"][1] / narrow.bands["tpot_s.mean"][0]


def test_the_host_shows_where_an_engine_does_not_schedule_ahead(tmp_path):
    def hosts(version):
        found = case(tmp_path, silicon_data_source="source_file=gap.csv", backend_version=version)
        assert isinstance(found, Case)
        documents = (found.document, *found.plausible)
        scenarios = [Simulation.prepare(document, tmp_path).scenario for document in documents]
        return [(one.host.async_scheduling, one.host.per_request_s > 1e-5, one.host.step_s > 1e-3) for one in scenarios]

    exposed, hidden = (False, True, True), (True, False, False)
    assert hosts("0.12.0") == [exposed, exposed, hidden, hidden]
    ahead, shown = hidden, (True, True, True)
    assert hosts("0.14.0") == [ahead, ahead, shown, shown]


def test_rows_of_the_known_harness_have_one_setup(tmp_path):
    found = case(tmp_path)
    assert isinstance(found, Case)
    assert found.plausible == ()


def test_the_kv_cache_of_an_unknown_harness_follows_the_weights(tmp_path):
    found = case(tmp_path, silicon_data_source="source_file=gap.csv")
    assert isinstance(found, Case)
    assert found.document["precision"] == {"weights": "fp8", "kv_cache": "fp8"}


@pytest.mark.parametrize(
    ("sizes", "cluster"),
    [
        ((8, 1, 8, 1), {"tensor_parallel": 8}),
        ((8, 1, 1, 8), {"tensor_parallel": 8, "expert_parallel": 8}),
        ((64, 1, 8, 8), {"tensor_parallel": 8, "expert_parallel": 8}),
        ((1, 64, 8, 8), {"data_parallel": 8, "expert_parallel": 8}),
        ((4, 2, 1, 8), {"tensor_parallel": 4, "data_parallel": 2, "expert_parallel": 8}),
    ],
)
def test_a_row_may_split_experts_and_requests(tmp_path, sizes, cluster):
    tensor, data, across, experts = map(str, sizes)
    split = {"tp_size": tensor, "attention_dp_size": data, "moe_tp_size": across, "moe_ep_size": experts}
    found = case(tmp_path, model_path="deepseek-ai/DeepSeek-V3", backend="sglang", **split)
    assert isinstance(found, Case)
    assert found.document["cluster"] == {"accelerator": "h200-sxm"} | cluster
    Simulation.prepare(found.document, tmp_path)


def test_kimi_is_run_in_the_integers_it_was_published_in(tmp_path):
    change = {"model_path": "moonshotai/Kimi-K2.5", "gemm_quant_mode": "int4_wo", "moe_quant_mode": "int4_wo"}
    found = case(tmp_path, **change, tp_size="8")
    assert isinstance(found, Case)
    assert found.document["precision"] == {"weights": "int4-experts", "kv_cache": "bf16"}
    assert found.document["memory"]["gpu_memory_utilization"] == 0.95
    Simulation.prepare(found.document, tmp_path)


def test_undated_rows_that_repeat_dated_ones_are_run_like_them(tmp_path):
    change = {"model_path": "moonshotai/Kimi-K2.5", "tp_size": "8"}
    change |= {"gemm_quant_mode": "int4_wo", "moe_quant_mode": "int4_wo"}
    dated = case(tmp_path, **change)
    undated = case(tmp_path, **change, silicon_data_source="source_file=gap.csv; silicon_concurrency=4")
    assert isinstance(dated, Case)
    assert isinstance(undated, Case)
    assert (dated.document, dated.plausible) == (undated.document, undated.plausible)
    assert (dated.labels["harness"], undated.labels["harness"]) == ("known", "unknown")


def test_rows_that_drafted_tokens_are_not_simulated(tmp_path):
    found = case(tmp_path, **QWEN35, system="b200_sxm", tp_size="4", moe_tp_size="4", moe_ep_size="1")
    assert isinstance(found, Refusal)
    assert found.reason == "speculative decoding, which is not simulated"


def test_no_row_of_the_measured_file_is_dropped(shared_data):
    table = shared_data / "measured" / "engine_runs.csv"
    with table.open(encoding="utf-8", newline="") as stream:
        rows = sum(1 for _ in csv.DictReader(stream))
    found = [case_of(run) for run in read_engine_runs(table)]
    assert len(found) == rows
    assert sum(isinstance(item, Case) for item in found) > 800
