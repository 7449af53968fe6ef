"""Tables of aiconfigurator in either layout: shapes, units, and errors that name file and line."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrate.importers import aiconfigurator
from simcore.core.errors import FileError, InputError, UnknownNameError


@pytest.fixture
def profiles(shared_data):
    return shared_data / "profiles"


def test_aiconfigurator_reads_every_kernel_table(profiles):
    root = aiconfigurator.find_root(profiles / "aiconfigurator")
    tables = list(aiconfigurator.read_system(root, "a100_sxm"))
    assert {table.kind for table in tables} == {
        "gemm",
        "context_attention",
        "generation_attention",
        "moe",
        "collective",
    }
    assert {(table.engine, table.version) for table in tables} == {("vllm", "0.14.0"), ("nccl", "2.27.3")}
    assert {table.accelerator for table in tables} == {"a100-sxm-80gb"}
    gemm = next(table for table in tables if table.kind == "gemm")
    one = (gemm.columns["tokens"] == 1024) & (gemm.columns["n"] == 4096) & (gemm.columns["k"] == 4096)
    # 34.4 GFLOP take 110 us at the datasheet's 312 TFLOP/s.
    assert 1.1e-4 < gemm.latency_s[one][0] < 3e-4


def test_sizes_of_messages_count_elements(profiles):
    root = aiconfigurator.find_root(profiles / "aiconfigurator")
    (table,) = aiconfigurator.read_system(root, "a100_sxm", "nccl")
    largest = (table.columns["operation"] == "all_reduce") & (table.columns["ranks_per_node"] == 8)
    index = np.flatnonzero(largest)[np.argmax(table.columns["bytes"][largest])]
    carried = 2 * 7 / 8 * table.columns["bytes"][index] / table.latency_s[index]
    assert 200e9 < carried < 300e9  # of 300 GB/s per direction


def test_unknown_systems_are_named(profiles):
    root = profiles / "aiconfigurator"
    with pytest.raises(UnknownNameError, match="Did you mean 'h200_sxm'"):
        list(aiconfigurator.read_system(root, "h20_sxm"))
    with pytest.raises(InputError, match="aiconfigurator-core"):
        aiconfigurator.find_root(None)


def parquet(folder: Path, rows: dict, name: str = "gemm_perf") -> Path:
    path = folder / "h100_sxm" / "gemm" / "vllm" / "0.19.0" / f"{name}.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(rows), path)
    return path


GOOD = {"gemm_dtype": ["bfloat16"] * 3, "m": [1, 2, 4], "n": [64] * 3, "k": [64] * 3, "latency": [0.01, 0.01, 0.02]}


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("latency", [0.01, -1.0, 0.02], "line 2: latency is -0.001, expected above zero"),
        ("latency", [0.01, 0.01, float("nan")], "line 3: latency is nan"),
        ("n", [64, 64, 0], "line 3: n is 0, expected a whole number of at least 1"),
        ("m", [1.0, 1.5, 4.0], "line 2: m is '1.5', expected a whole number"),
        ("m", [1e23, 2.0, 4.0], r"line 1: m is '1e\+23', expected a whole number"),
        ("m", [True, True, False], "line 1: m is 'True', expected a number"),
        ("m", [None, 2, 4], "line 1: m is '', expected a number"),
        ("m", [datetime(2020, 1, 1)] * 3, "line 1: m is '2020-01-01 00:00:00', expected a number"),
        ("m", [[1], [2], [4]], r"line 1: m is '\[1\]', expected a number"),
        ("gemm_dtype", ["fp8", None, "fp8"], "line 2: dtype is empty, expected some text"),
        ("m", ["1", "x", "4"], "line 2: m is 'x', expected a number"),
        ("latency", ["0.01", "fast", "0.02"], "line 2: latency is 'fast', expected a number"),
    ],
)
def test_broken_rows_name_file_and_row(tmp_path, column, values, message):
    path = parquet(tmp_path, {**GOOD, column: values})
    with pytest.raises(FileError, match=message) as raised:
        aiconfigurator.read_table(path, "h100_sxm")
    assert str(path) in str(raised.value)


def test_cells_that_are_no_text_are_refused_where_they_are_asked_for(tmp_path):
    odd = pa.array([1, 2, 3], pa.timestamp("ns", "Foo/Bar"))
    assert len(aiconfigurator.read_table(parquet(tmp_path / "a", GOOD | {"when": odd}), "h100_sxm")) == 3
    with pytest.raises(FileError, match=r"m cannot be read \("):
        aiconfigurator.read_table(parquet(tmp_path / "b", GOOD | {"m": odd}), "h100_sxm")


def test_columns_of_one_name_are_refused_in_either_form(tmp_path):
    path = tmp_path / "h100_sxm" / "gemm" / "vllm" / "1" / "gemm_perf.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["m", "m"]), path)
    path.with_suffix(".txt").write_text("m,m\n1,2\n", encoding="utf-8")
    for file in (path, path.with_suffix(".txt")):
        with pytest.raises(FileError, match="two columns are called 'm'"):
            aiconfigurator.read_table(file, "h100_sxm")


def test_messages_of_an_unknown_data_type_name_file_and_row(tmp_path):
    rows = {"nccl_dtype": ["half", "odd"], "num_gpus": [2, 2], "message_size": [8, 8], "latency": [0.1, 0.1]}
    with pytest.raises(FileError, match=r"line 2: nccl_dtype is 'odd', expected one of fp16, bf16"):
        aiconfigurator.read_table(parquet(tmp_path, rows, "nccl_perf"), "h100_sxm")


def test_of_sums_those_in_16_bits_and_of_moved_bytes_all(tmp_path):
    rows = {
        "op_name": ["all_reduce", "reduce_scatter"] * 2 + ["all_reduce", "all_gather", "all_gather"],
        "nccl_dtype": ["half", "half", "int8", "int8", "int8", "half", "int8"],
        "num_gpus": [2] * 7,
        "message_size": [8, 8, 16, 16, 4, 8, 16],
        "latency": [0.1, 0.6, 0.2, 0.7, 0.3, 0.4, 0.5],
    }
    table = aiconfigurator.read_table(parquet(tmp_path, rows, "nccl_perf"), "h100_sxm")
    # The sum of 4 bytes was measured in 8 bits alone.
    assert dict(zip(table.latency_s.round(6).tolist(), table.columns["bytes"].tolist(), strict=True)) == {
        0.0001: 16,
        0.0006: 16,
        0.0003: 4,
        0.0004: 16,
        0.0005: 16,
    }


def test_modules_of_latent_attention_are_taken_with_queries_in_16_bits(tmp_path):
    rows = {"kv_cache_dtype": ["fp8"] * 2, "num_heads": [16] * 2, "batch_size": [2] * 2, "isl": [64] * 2}
    rows |= {"gemm_type": ["fp8_block"] * 2, "mla_dtype": ["bfloat16", "fp8"], "latency": [0.1, 0.2]}
    table = aiconfigurator.read_table(parquet(tmp_path, rows, "mla_context_module_perf"), "h100_sxm")
    shape = {name: values.tolist() for name, values in table.columns.items()}
    assert shape == {"dtype": ["fp8-block"], "kv_dtype": ["fp8"], "heads": [16], "batch": [2], "tokens": [64]}
    assert table.latency_s.tolist() == [1e-4]


def test_what_is_launched_alone_is_left_out(tmp_path):
    rows = {
        "kernel_source": ["vLLM_custom_graph", "vLLM_custom_eager", "SGLang_CustomAllReduce_eager", "NCCL"],
        "allreduce_dtype": ["bfloat16"] * 4,
        "num_gpus": [2] * 4,
        "message_size": [8] * 4,
        "latency": [0.005, 0.04, 0.04, 0.008],
    }
    table = aiconfigurator.read_table(parquet(tmp_path, rows, "custom_allreduce_perf"), "h100_sxm")
    assert table.columns["implementation"].tolist() == ["custom_graph", "nccl"]
    assert table.latency_s.tolist() == pytest.approx([5e-6, 8e-6])


def test_missing_columns_and_other_tables_are_refused(tmp_path):
    rows = {name: values for name, values in GOOD.items() if name != "latency"}
    with pytest.raises(FileError, match="no column latency"):
        aiconfigurator.read_table(parquet(tmp_path / "a", rows), "h100_sxm")
    with pytest.raises(FileError, match="not a kernel table"):
        aiconfigurator.read_table(parquet(tmp_path / "b", GOOD, "whole_engine"), "h100_sxm")
    assert aiconfigurator.table_files(tmp_path / "b", "h100_sxm") == []


def test_older_releases_have_no_folder_per_family(tmp_path):
    made = parquet(tmp_path, GOOD)
    older = tmp_path / "older" / "h100_sxm" / "sglang" / "0.5.9" / made.name
    older.parent.mkdir(parents=True)
    made.rename(older)
    (table,) = aiconfigurator.read_system(tmp_path / "older", "h100_sxm")
    assert (table.accelerator, table.engine, table.version) == ("h100-sxm", "sglang", "0.5.9")


def test_what_a_system_has_no_tables_of_is_named(tmp_path):
    parquet(tmp_path, GOOD)
    (tmp_path / "gb200").mkdir()  # which servetwin has no datasheet of
    for chosen, message in (
        (("gb200",), "--system is 'gb200', expected one of h100_sxm"),
        (("h100_sxm", "vlm"), "--engine is 'vlm', expected one of vllm. Did you mean 'vllm'"),
        (("h100_sxm", "vllm", "0.19"), "--version is '0.19', expected one of 0.19.0"),
    ):
        with pytest.raises(UnknownNameError, match=message):
            list(aiconfigurator.read_system(tmp_path, *chosen))
    with pytest.raises(InputError, match=r"--root is '.*gb200', expected a folder per system, such as a100_sxm"):
        list(aiconfigurator.read_system(tmp_path / "gb200", "h100_sxm"))


def test_a_system_is_the_one_asked_for_wherever_its_folder_lies(tmp_path, monkeypatch):
    path = parquet(tmp_path / "b200_sxm", GOOD)
    older = tmp_path / "b200_sxm" / "h100_sxm" / "vllm" / "0.19.0" / path.name
    older.parent.mkdir(parents=True)
    path.rename(older)
    monkeypatch.chdir(tmp_path / "b200_sxm")
    (table,) = aiconfigurator.read_system(Path(), "h100_sxm")
    assert (table.accelerator, table.engine, table.version) == ("h100-sxm", "vllm", "0.19.0")


def test_the_oldest_releases_hold_csv(tmp_path):
    path = tmp_path / "h100_sxm" / "trtllm" / "1.0.0rc3" / "gemm_perf.txt"
    path.parent.mkdir(parents=True)
    rows = ["gemm_dtype,m,n,k,latency", "float16,1,64,64,0.01", "sq,2,64,64,0.02", "int4_wo,4,64,64,0.04"]
    path.write_text("\n".join(rows), encoding="utf-8")
    (table,) = aiconfigurator.read_system(tmp_path, "h100_sxm")
    assert table.columns["dtype"].tolist() == ["bf16", "int8", "int4"]
    assert table.latency_s == pytest.approx([1e-5, 2e-5, 4e-5])
    path.write_text("\n".join([*rows, "", "fp8,0,64,64,0.01"]), encoding="utf-8")
    with pytest.raises(FileError, match=r"gemm_perf\.txt, line 6: tokens is 0"):
        aiconfigurator.read_table(path, "h100_sxm")


def test_the_fastest_kernel_of_a_shape_is_kept(tmp_path):
    rows = {name: values[:2] for name, values in GOOD.items()} | {"m": [8, 8], "latency": [0.03, 0.01]}
    samples = aiconfigurator.read_table(parquet(tmp_path, rows | {"kernel_source": ["slow", "fast"]}), "h100_sxm")
    assert samples.latency_s.tolist() == [1e-5]


def test_attention_in_the_dtype_of_the_cache_is_kept(tmp_path):
    """Where only another was measured, that stays."""
    rows = {"kv_cache_dtype": ["fp8", "fp8", "fp8"], "attn_dtype": ["bfloat16", "fp8", "bfloat16"]}
    rest = {"num_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "batch_size": 1}
    columns = {name: [value] * 3 for name, value in rest.items()} | {"isl": [16, 16, 32], "latency": [0.01, 0.02, 0.03]}
    samples = aiconfigurator.read_table(parquet(tmp_path, rows | columns, "context_attention_perf"), "h100_sxm")
    assert samples.columns["tokens"].tolist() == [16, 32]
    assert samples.latency_s == pytest.approx([2e-5, 3e-5])


def test_kernels_of_one_dtype_that_differ_much_are_told_apart(tmp_path):
    """Those of experts that an engine takes only if it is told to."""
    kernels = ["triton", "x_marlin_y", "x_marlin_y", "cutlass", "deepgemm"]
    dtypes = ["w4a16_mxfp4", "w4a16_mxfp4", "int4_wo", "fp8_block", "fp8_block"]
    sizes = {"hidden_size": 64, "inter_size": 64, "topk": 2, "num_experts": 8, "moe_tp_size": 1, "moe_ep_size": 1}
    rest = sizes | {"distribution": "balanced", "num_tokens": 1, "latency": 1.0}
    columns = {name: [value] * len(kernels) for name, value in rest.items()}
    table = parquet(tmp_path, columns | {"kernel_source": kernels, "moe_dtype": dtypes}, "moe_perf")
    found = aiconfigurator.read_table(table, "h100_sxm").columns["dtype"].tolist()
    assert found == ["mxfp4", "mxfp4-marlin", "int4", "fp8-block", "fp8-block-deepgemm"]


def delta_rule_rows(kernels, **changed):
    rest = {"phase": "context", "batch_size": 2, "seq_len": 64, "num_k_heads": 2, "head_k_dim": 128}
    rest |= {"num_v_heads": 8, "head_v_dim": 128, "model_name": "one", "latency": 0.01} | changed
    columns = {name: value if isinstance(value, list) else [value] * len(kernels) for name, value in rest.items()}
    return columns | {"kernel_source": kernels}


def test_kernels_of_linear_attention_run_one_after_the_other(tmp_path):
    """Models of one shape are repeats, and what lacks a kernel is no sample."""
    rule = ["chunk_gated_delta_rule", "causal_conv1d_fn"]
    rows = delta_rule_rows(
        [*rule, *rule, *rule, "causal_conv1d_fn", "chunk_gated_delta_rule_other"],
        model_name=["one", "one", "two", "two", "one", "one", "one", "one"],
        seq_len=[64, 64, 64, 64, 128, 128, 256, 64],
        latency=[0.05, 0.004, 0.06, 0.005, 0.07, 0.006, 0.007, 0.04],
    )
    samples = aiconfigurator.read_table(parquet(tmp_path, rows, "gdn_perf"), "h100_sxm")
    assert samples.kind == "linear_attention"
    assert samples.columns["tokens"].tolist() == [64, 64, 128]
    assert samples.lines.tolist() == [2, 4, 6]  # of the convolutions
    assert samples.latency_s == pytest.approx([44e-6, 65e-6, 76e-6])  # the faster rule of the first
    assert {name: values.tolist()[0] for name, values in samples.columns.items()} == {
        "phase": "context",
        "key_heads": 2,
        "value_heads": 8,
        "key_head_dim": 128,
        "value_head_dim": 128,
        "batch": 2,
        "tokens": 64,
    }


def test_linear_attention_of_which_no_shape_has_both_kernels_gives_no_samples(tmp_path):
    rows = delta_rule_rows(["causal_conv1d_fn", "chunk_gated_delta_rule"], seq_len=[64, 128])
    assert len(aiconfigurator.read_table(parquet(tmp_path, rows, "gdn_perf"), "h100_sxm")) == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kernel_source": ["causal_conv1d_fn", "softmax"]}, "line 2: kernel_source is 'softmax', expected one whose"),
        ({"phase": ["context", "prefill"]}, "line 2: phase is 'prefill', expected one of context, generation"),
        ({"kernel": ["a", "b"]}, "no column kernel_source; there are batch_size,"),
        ({"num_v_heads": [8, "x"]}, "line 2: num_v_heads is 'x', expected a number"),
        ({"num_v_heads": [8, 7]}, "line 2: value_heads is 7, expected a multiple of the key heads"),
    ],
)
def test_broken_rows_of_linear_attention_are_named(tmp_path, changed, message):
    rows = delta_rule_rows(["causal_conv1d_fn", "chunk_gated_delta_rule"]) | changed
    rows = {name: [str(value) for value in values] if "x" in values else values for name, values in rows.items()}
    if "kernel" in changed:
        del rows["kernel_source"]
    with pytest.raises(FileError, match=message):
        aiconfigurator.read_table(parquet(tmp_path, rows, "gdn_perf"), "h100_sxm")
