"""What scripts of measured runs asked for: slots, budgets, splits, graphs and waiting prompts."""

import pytest

from fidelity.case import Case
from simcore.build.simulation import Simulation
from tests.fidelity.engine_run_rows import QWEN35, case


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


@pytest.mark.parametrize(
    ("output", "graphs"), [("1024", {"max_cudagraph_tokens": 8192, "mixed_graphs": True}), ("8192", {})]
)
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
def test_prompts_wait_for_other_data_parallel_ranks_where_a_script_says_so(tmp_path, model, precision, budget, steps):
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


@pytest.mark.parametrize(("concurrency", "steps"), [(4, 10), (16, 30), (64, 30)])
def test_setups_may_depend_on_concurrency(tmp_path, concurrency, steps):
    source = f"db-dump/2026-04-27; silicon_concurrency={concurrency}; measured=2026-03-25"
    change = {"backend": "sglang", "model_path": "deepseek-ai/DeepSeek-V3", "system": "b200_sxm", "batch_size": ""}
    found = case(tmp_path, **change, silicon_data_source=source)
    assert isinstance(found, Case)
    assert found.document["scheduler"]["batching"]["receive_interval_steps"] == steps


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
    assert found.document["host"].get("max_cudagraph_tokens") == graphs


def test_a_setup_may_choose_kernels_and_graphs(tmp_path):
    found = case(
        tmp_path, model_path="openai/gpt-oss-120b", system="h100_sxm", precision="fp4", gemm_quant_mode="nvfp4"
    )
    assert isinstance(found, Case)
    assert found.document["pricing"]["expert_kernels"] == "marlin"
    assert found.document["host"] == {"max_cudagraph_tokens": 2048}
    Simulation.prepare(found.document, tmp_path)
