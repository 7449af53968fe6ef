"""The constants of roofline pricing against the measurements that they are medians of."""

import numpy as np
import pyarrow.parquet
import pytest

from simcore.cost.assumptions import RooflineEfficiency
from simcore.hardware import load_accelerator

TOLERANCE = 0.05
"""Of a share of peak: the constants are rounded."""
H100 = load_accelerator("h100-sxm")


def read(shared_data, *path):
    folder = shared_data / "profiles" / "aiconfigurator" / "h100_sxm"
    table = pyarrow.parquet.read_table(folder.joinpath(*path))
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return columns | {"seconds": columns["latency"] / 1e3}


@pytest.fixture
def gemm(shared_data):
    columns = read(shared_data, "gemm", "vllm", "0.19.0", "gemm_perf.parquet")
    chosen = columns["gemm_dtype"] == "bfloat16"
    return {
        name: column[chosen].astype(np.float64)
        for name, column in columns.items()
        if name in "mnk" or name == "seconds"
    }


def attention(shared_data, kind):
    columns = read(shared_data, "attention", "vllm", "0.19.0", f"{kind}_attention_perf.parquet")
    chosen = (columns["kv_cache_dtype"] == "bfloat16") & (columns["window_size"] == 0)
    numbers = ("batch_size", "isl", "step", "num_heads", "num_key_value_heads", "head_dim", "seconds")
    return {name: columns[name][chosen].astype(np.float64) for name in numbers}


def test_large_matrix_products(gemm):
    large = (gemm["m"] >= 512) & (gemm["n"] >= 2048) & (gemm["k"] >= 2048)
    reached = 2 * gemm["m"] * gemm["n"] * gemm["k"] / gemm["seconds"] / H100.peak_flops_per_s["bf16"]
    assert np.median(reached[large]) == pytest.approx(RooflineEfficiency().matmul_compute, abs=TOLERANCE)


def test_products_of_few_tokens(gemm):
    m, n, k = gemm["m"], gemm["n"], gemm["k"]
    few = (m <= 64) & (n * k >= 4096 * 14336)
    reached = 2 * (m * k + n * k + m * n) / gemm["seconds"] / H100.memory_bandwidth_bytes_per_s
    assert np.median(reached[few]) == pytest.approx(RooflineEfficiency().matmul_memory, abs=TOLERANCE)


def test_the_smallest_product(gemm):
    fastest_s = np.percentile(gemm["seconds"], 0.5)
    assert fastest_s == pytest.approx(RooflineEfficiency().kernel_floor_s, rel=0.05)


def test_prefill_attention(shared_data):
    table = attention(shared_data, "context")
    tokens = table["isl"]
    usual = (tokens >= 1024) & (tokens <= 4096) & (table["head_dim"] == 128) & (table["num_heads"] >= 16)
    flops = 4 * table["batch_size"] * table["num_heads"] * table["head_dim"] * tokens * (tokens + 1) / 2
    reached = flops / table["seconds"] / H100.peak_flops_per_s["bf16"]
    assert np.median(reached[usual]) == pytest.approx(RooflineEfficiency().attention_compute, abs=TOLERANCE)


def test_decode_attention(shared_data):
    table = attention(shared_data, "generation")
    usual = (table["batch_size"] >= 16) & (table["step"] >= 1024) & (table["num_key_value_heads"] >= 4)
    read_bytes = 2 * 2 * table["batch_size"] * (table["step"] + 1) * table["num_key_value_heads"] * table["head_dim"]
    reached = read_bytes / table["seconds"] / H100.memory_bandwidth_bytes_per_s
    assert np.median(reached[usual]) == pytest.approx(RooflineEfficiency().attention_memory, abs=TOLERANCE)


def test_all_reduce_over_eight(shared_data):
    table = read(shared_data, "comm", "vllm", "0.19.0", "custom_allreduce_perf.parquet")
    chosen = (table["num_gpus"] == 8) & (table["backend"] == "vllm_graph")
    size, seconds = table["message_size"][chosen].astype(np.float64), table["seconds"][chosen]
    largest = size == 256 * 2**20
    assert H100.interconnect_bytes_per_s is not None
    reached = 2 * 7 / 8 * size[largest] / seconds[largest] / H100.interconnect_bytes_per_s
    assert reached.tolist() == pytest.approx([RooflineEfficiency().interconnect], abs=TOLERANCE)
    assert seconds[size <= 1024].tolist() == pytest.approx([RooflineEfficiency().collective_floor_s] * 4, rel=0.05)
