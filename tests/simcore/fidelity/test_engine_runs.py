import re
from dataclasses import replace
from datetime import date

import pytest

from simcore.errors import FileError
from simcore.fidelity.case import Case, Outcome, Refusal
from simcore.fidelity.engine_runs import read_engine_runs
from simcore.fidelity.execution import simulate_case
from simcore.fidelity.harness import case_of
from simcore.simulation import Simulation
from tests.simcore.fidelity.engine_run_rows import write_rows


def case(tmp_path, **change):
    (run,) = read_engine_runs(write_rows(tmp_path / "runs.csv", change))
    return case_of(run)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("isl", "many"),
        ("isl", "0"),
        ("silicon_ttft_ms", ""),
        ("silicon_tpot_ms", "-1"),
        ("silicon_tpot_ms", "nan"),
        ("tp_size", "2.5"),
        ("model_path", ""),
    ],
)
def test_a_broken_row_names_file_line_and_column(tmp_path, column, value):
    path = write_rows(tmp_path / "runs.csv", {}, {column: value})
    with pytest.raises(FileError, match=rf"runs\.csv, line 3: {column} is"):
        read_engine_runs(path)


def test_whole_numbers_may_be_written_as_a_column_with_gaps_has_them(tmp_path):
    (run,) = read_engine_runs(write_rows(tmp_path / "runs.csv", {"isl": "1024.0", "tp_size": "4.0"}))
    assert (run.prompt_tokens, run.tensor_parallel) == (1024, 4)


def test_a_day_that_is_none_names_file_and_line(tmp_path):
    source = "db-dump/2026-04-27; silicon_concurrency=4; measured=2026-13-01T00:00:00.000Z"
    path = write_rows(tmp_path / "runs.csv", {}, {"silicon_data_source": source})
    with pytest.raises(FileError, match=r"runs\.csv, line 3: measured=2026-13-01 names no day"):
        read_engine_runs(path)


@pytest.mark.parametrize("stated", ["abc", "0", "", "-4", "4.5"])
def test_a_concurrency_that_is_none_names_file_and_line(tmp_path, stated):
    source = f"db-dump/2026-04-27; silicon_concurrency={stated}; measured=2026-01-01"
    path = write_rows(tmp_path / "runs.csv", {}, {"silicon_data_source": source})
    with pytest.raises(FileError, match=rf"runs\.csv, line 3: silicon_concurrency is '{re.escape(stated)}', expected"):
        read_engine_runs(path)


@pytest.mark.parametrize(("stated", "precision"), [("bfloat16", "bf16"), ("float16", "fp16")])
def test_formats_may_be_written_out(tmp_path, stated, precision):
    assert case(tmp_path, gemm_quant_mode=stated).labels["precision"] == precision


def test_a_file_without_rows_is_refused(tmp_path):
    with pytest.raises(FileError, match="has no rows"):
        read_engine_runs(write_rows(tmp_path / "runs.csv"))


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="no column 'id'"):
        read_engine_runs(path)


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
        return [(one.host.overlapped, one.host.per_request_s > 0, one.host.step_s > 1e-3) for one in scenarios]

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


@pytest.mark.parametrize(("concurrency", "requests"), [("8", 160), ("64", 1280), ("128", 2000)])
def test_requests_of_a_version_are_as_its_means_tell(tmp_path, concurrency, requests):
    source = f"source_file=gap.csv; silicon_concurrency={concurrency}"
    change = {"backend": "trtllm", "backend_version": "1.0.0rc3", "batch_size": concurrency}
    found = case(tmp_path, silicon_data_source=source, **change)
    assert isinstance(found, Case)
    assert found.document["workload"]["requests"] == requests


def test_room_is_made_for_a_prompt_that_is_never_cut(tmp_path):
    change = {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-V3", "isl": "8192", "moe_quant_mode": "fp8"}
    found = case(tmp_path, **change)
    assert isinstance(found, Case)
    budget = found.document["scheduler"]["batching"]["max_batched_tokens"]
    assert budget >= 8192 + 4
    assert budget % 64 == 0


@pytest.mark.parametrize(
    ("measured", "concurrency", "prompt", "budget"),
    [
        ("2025-11-02", 64, 1024, 1152),
        ("2025-11-02", 64, 8192, 8320),
        ("2026-02-03", 64, 1024, 8192),
        ("2026-02-03", 256, 8192, 8512),
    ],
)
def test_a_row_is_set_up_as_scripts_were_when_it_was_measured(tmp_path, measured, concurrency, prompt, budget):
    """The older scripts of DeepSeek-V3 had room for one prompt and a token per client; later ones for 8192 at least."""
    source = f"db-dump/2026-04-27; silicon_concurrency={concurrency}; measured={measured}T00:00:00.000Z"
    change = {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-V3", "isl": str(prompt), "batch_size": ""}
    found = case(tmp_path, **change, silicon_data_source=source)
    assert isinstance(found, Case)
    assert found.document["scheduler"]["batching"]["max_batched_tokens"] == budget


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


@pytest.mark.parametrize(("measured", "experts"), [("2026-03-01", None), ("2026-03-28", 8), ("2026-05-01", None)])
def test_a_script_may_have_switched_expert_parallelism_on(tmp_path, measured, experts):
    source = f"db-dump/2026-04-27; silicon_concurrency=4; measured={measured}"
    change = {"model_path": "MiniMaxAI/MiniMax-M2.5", "tp_size": "8", "silicon_data_source": source}
    found = case(tmp_path, **change)
    assert isinstance(found, Case)
    assert found.document["cluster"].get("expert_parallel") == experts


def known_b200(tmp_path, concurrency, measured, **change):
    source = f"db-dump/2026-04-27; silicon_concurrency={concurrency}; measured={measured}"
    fixed = {"system": "b200_sxm", "gemm_quant_mode": "nvfp4", "moe_quant_mode": "nvfp4", "batch_size": ""}
    found = case(tmp_path, **fixed | {"silicon_data_source": source} | change)
    assert isinstance(found, Case)
    Simulation.prepare(found.document, tmp_path)
    return found


@pytest.mark.parametrize(
    ("concurrency", "prompt", "split", "budget"),
    [
        ("8", "1024", {"tensor_parallel": 4}, 1152),
        ("64", "1024", {"tensor_parallel": 4, "expert_parallel": 4}, 1152),
        ("256", "1024", {"data_parallel": 4, "expert_parallel": 4}, 4 * 1344),
        ("64", "8192", {"data_parallel": 4, "expert_parallel": 4}, 4 * 8320),
    ],
)
def test_a_script_may_have_split_attention_where_rows_do_not_say_so(tmp_path, concurrency, prompt, split, budget):
    sizes = {"tp_size": "4", "moe_tp_size": "4", "moe_ep_size": "1", "isl": prompt}
    change = {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-V3"}
    found = known_b200(tmp_path, concurrency, "2025-11-02", **sizes, **change)
    assert found.document["cluster"] == {"accelerator": "b200"} | split
    assert found.document["scheduler"]["batching"]["max_batched_tokens"] == budget
    assert found.document["precision"] == {"weights": "nvfp4-no-qkv", "kv_cache": "fp8"}
    experts, data = split.get("expert_parallel", 1), split.get("data_parallel", 1)
    assert found.labels["experts_and_data"] == f"{experts}/{data}"


def test_a_script_may_have_left_experts_split_whatever_a_row_says(tmp_path):
    sizes = {"tp_size": "4", "attention_dp_size": "4", "moe_tp_size": "1", "moe_ep_size": "16", "batch_size": "4"}
    change = {"model_path": "moonshotai/Kimi-K2.5"}
    found = known_b200(tmp_path, "16", "2026-03-27", **sizes, **change)
    assert found.document["cluster"] == {"accelerator": "b200", "tensor_parallel": 4}
    assert found.document["precision"] == {"weights": "nvfp4-experts", "kv_cache": "fp8"}


def test_undated_rows_that_repeat_dated_ones_are_run_like_them(tmp_path):
    change = {"model_path": "moonshotai/Kimi-K2.5", "tp_size": "8"}
    change |= {"gemm_quant_mode": "int4_wo", "moe_quant_mode": "int4_wo"}
    dated = case(tmp_path, **change)
    undated = case(tmp_path, **change, silicon_data_source="source_file=gap.csv; silicon_concurrency=4")
    assert isinstance(dated, Case)
    assert isinstance(undated, Case)
    assert (dated.document, dated.plausible) == (undated.document, undated.plausible)
    assert (dated.labels["harness"], undated.labels["harness"]) == ("known", "unknown")


@pytest.mark.parametrize(("output", "graphs"), [("1024", {"graph_tokens": 8192, "mixed_graphs": True}), ("8192", {})])
def test_prompts_are_in_graphs_where_a_script_says_so(tmp_path, output, graphs):
    sizes = {"tp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8", "osl": output}
    change = {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-V3"}
    found = known_b200(tmp_path, "64", "2026-02-03", **sizes, **change)
    assert found.document["host"] == graphs


@pytest.mark.parametrize(
    ("model", "precision", "budget", "steps"),
    [
        ("deepseek-ai/DeepSeek-V3", "nvfp4", 8 * 8192, (60, 0)),
        ("openai/gpt-oss-120b", "w4a16_mxfp4", 8 * 20000, (50, 10)),
    ],
)
def test_prompts_wait_for_other_data_groups_where_a_script_says_so(tmp_path, model, precision, budget, steps):
    sizes = {"tp_size": "1", "attention_dp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8", "batch_size": "2"}
    change = {"backend": "trtllm", "model_path": model, "gemm_quant_mode": precision, "moe_quant_mode": precision}
    found = known_b200(tmp_path, "128", "2026-02-03", **sizes, **change)
    batching = found.document["scheduler"]["batching"]
    assert batching == {
        "name": "group-balanced",
        "max_batched_tokens": budget,
        "max_waiting_steps": steps[0],
        "gathering_steps": steps[1],
    } | ({"max_running_requests": 8 * 512} if "gpt" in model else {})


@pytest.mark.parametrize(
    ("concurrency", "waits"), [("32", {}), ("64", {"max_waiting_steps": 40, "enough_tokens_share": 0.8}), ("256", {})]
)
def test_prompts_wait_for_more_where_a_script_says_so(tmp_path, concurrency, waits):
    sizes = {"tp_size": "8", "gemm_quant_mode": "fp8_block", "moe_quant_mode": "fp8_block", "osl": "1024"}
    change = {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-V3"}
    found = known_b200(tmp_path, concurrency, "2026-01-29", **sizes, **change)
    assert found.document["scheduler"]["batching"] == {"max_batched_tokens": 8192} | waits


def test_kimi_is_run_in_the_integers_it_was_published_in(tmp_path):
    change = {"model_path": "moonshotai/Kimi-K2.5", "gemm_quant_mode": "int4_wo", "moe_quant_mode": "int4_wo"}
    found = case(tmp_path, **change, tp_size="8")
    assert isinstance(found, Case)
    assert found.document["precision"] == {"weights": "int4-experts", "kv_cache": "bf16"}
    assert found.document["memory"]["gpu_memory_utilization"] == 0.95
    Simulation.prepare(found.document, tmp_path)


@pytest.mark.parametrize(("concurrency", "steps"), [(4, 10), (16, 30), (64, 30)])
def test_setups_may_depend_on_concurrency(tmp_path, concurrency, steps):
    source = f"db-dump/2026-04-27; silicon_concurrency={concurrency}; measured=2026-03-25"
    change = {"backend": "sglang", "model_path": "deepseek-ai/DeepSeek-V3", "system": "b200_sxm", "batch_size": ""}
    found = case(tmp_path, **change, silicon_data_source=source)
    assert isinstance(found, Case)
    assert found.document["scheduler"]["batching"]["receive_interval_steps"] == steps


QWEN35 = {"backend": "sglang", "model_path": "Qwen/Qwen3.5-397B-A17B", "moe_quant_mode": "fp8_block"}


@pytest.mark.parametrize(
    ("system", "sizes", "cluster", "budget"),
    [
        ("h200_sxm", ("64", "8", "8"), {"tensor_parallel": 8, "expert_parallel": 8}, 16384),
        ("b200_sxm", ("16", "4", "4"), {"tensor_parallel": 4, "expert_parallel": 4}, 32768),
        ("b200_sxm", ("8", "8", "1"), {"tensor_parallel": 8}, 32768),
    ],
)
def test_models_with_linear_attention_are_run(tmp_path, system, sizes, cluster, budget):
    change = dict(zip(("tp_size", "moe_tp_size", "moe_ep_size"), sizes, strict=True))
    found = case(tmp_path, **QWEN35, system=system, **change)
    assert isinstance(found, Case)
    assert found.document["cluster"] == {"accelerator": system.replace("b200_sxm", "b200").replace("_", "-")} | cluster
    assert found.document["precision"] == {"weights": "fp8-block", "kv_cache": "fp8"}
    assert found.document["scheduler"]["batching"]["max_batched_tokens"] == budget
    prepared = Simulation.prepare(found.document, tmp_path)
    (linear,) = prepared.cost.linear_attention
    assert linear.measured is not None


@pytest.mark.parametrize(
    ("measured", "prompt", "budget", "graphs"),
    [("2026-03-27", "1024", 8192, None), ("2026-04-20", "1024", 2048, 2048), ("2026-04-20", "8192", 16384, 2048)],
)
def test_a_script_may_have_come_later(tmp_path, measured, prompt, budget, graphs):
    change = {"model_path": "moonshotai/Kimi-K2.5", "moe_quant_mode": "nvfp4", "system": "b200_sxm", "tp_size": "4"}
    source = f"db-dump/2026-04-27; silicon_concurrency=4; measured={measured}"
    found = case(tmp_path, **change, isl=prompt, silicon_data_source=source)
    assert isinstance(found, Case)
    assert found.document["scheduler"]["batching"]["max_batched_tokens"] == budget
    assert found.document["host"].get("graph_tokens") == graphs


def test_rows_that_drafted_tokens_are_not_simulated(tmp_path):
    found = case(tmp_path, **QWEN35, system="b200_sxm", tp_size="4", moe_tp_size="4", moe_ep_size="1")
    assert isinstance(found, Refusal)
    assert found.reason == "speculative decoding, which is not simulated"


def test_a_setup_may_choose_kernels_and_graphs(tmp_path):
    found = case(
        tmp_path, model_path="openai/gpt-oss-120b", system="h100_sxm", precision="fp4", gemm_quant_mode="nvfp4"
    )
    assert isinstance(found, Case)
    assert found.document["pricing"]["expert_kernels"] == "marlin"
    assert found.document["host"] == {"graph_tokens": 2048}
    Simulation.prepare(found.document, tmp_path)


def test_a_row_may_state_when_it_was_measured(tmp_path):
    stated = {"silicon_data_source": "source_file=2026-04-06.csv; silicon_concurrency=4; measured=2025-12-08T00:00"}
    dated, undated = read_engine_runs(write_rows(tmp_path / "runs.csv", stated, {}))
    assert (dated.measured_on, undated.measured_on) == (date(2025, 12, 8), None)


def test_no_row_of_the_measured_file_is_dropped(shared_data):
    runs = read_engine_runs(shared_data / "measured" / "engine_runs.csv")
    found = [case_of(run) for run in runs]
    assert len(found) == 2661
    assert sum(isinstance(item, Case) for item in found) > 800
