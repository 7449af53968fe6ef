"""What profiles are made of: which rows of a table, under which name, and which are repeats of others."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrate.recipes import OLDER_WHEEL, RECIPES, REPOSITORY, WHEEL, Tables
from calibrate.repeats import repeats
from calibrate.samples import SampleTable, joined
from calibrate.ship import origin_of, read
from simcore.core.errors import FileError
from simcore.cost.calibrated import available_profiles
from simcore.hardware import accelerator_names


def products(*dtypes, version="1", latency_s=1e-5, tokens=(1, 2, 3)):
    columns = {"dtype": np.repeat(dtypes, len(tokens)), "tokens": np.tile(tokens, len(dtypes))}
    columns |= {name: np.full(len(columns["tokens"]), 64) for name in ("n", "k")}
    rows = np.arange(1, len(columns["tokens"]) + 1)
    return SampleTable("gemm", "h100-sxm", "vllm", version, columns, np.full(len(rows), latency_s), "x", rows)


@pytest.fixture
def root(tmp_path):
    rows = {"gemm_dtype": ["bfloat16", "fp8", "int4_wo"], "m": [1, 1, 2], "n": [64] * 3, "k": [64] * 3}
    path = tmp_path / "h100_sxm" / "gemm" / "vllm" / "0.24.0" / "gemm_perf.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(rows | {"latency": [0.01, 0.02, 0.03]}), path)
    return tmp_path


@pytest.mark.parametrize(
    ("chosen", "dtypes"),
    [
        ({}, ["bf16", "fp8", "int4"]),
        ({"only": ("fp8",)}, ["fp8"]),
        ({"without": ("fp8",)}, ["bf16", "int4"]),
        ({"least_tokens": 2}, ["int4"]),
        ({"only": ("int4",), "stands_for": "mxfp4-marlin"}, ["mxfp4-marlin"]),
    ],
)
def test_a_recipe_takes_rows_by_dtype(root, chosen, dtypes):
    for path in ("gemm/vllm/0.24.0", "gemm/vllm/0.24.0/gemm_perf.parquet"):
        (samples,) = read(Tables(WHEEL, path, **chosen), "h100_sxm", root)
        assert samples.columns["dtype"].tolist() == dtypes


def test_whole_modules_are_read_where_they_are_asked_for(tmp_path):
    folder = tmp_path / "h200_sxm" / "mla" / "vllm" / "1"
    folder.mkdir(parents=True)
    rows = {"kv_cache_dtype": ["bfloat16"] * 2, "num_heads": [16] * 2, "batch_size": [1] * 2, "isl": [64] * 2}
    kernels = rows | {"step": [0] * 2, "latency": [0.01] * 2}
    pq.write_table(pa.table(kernels), folder / "context_mla_perf.parquet")
    of_modules = {"gemm_type": ["fp8_block", "bfloat16"], "mla_dtype": ["bfloat16"] * 2, "latency": [0.1] * 2}
    pq.write_table(pa.table(rows | of_modules), folder / "mla_context_module_perf.parquet")
    (samples,) = read(Tables(WHEEL, "mla/vllm/1"), "h200_sxm", tmp_path)
    assert samples.kind == "mla_context"
    (samples,) = read(Tables(WHEEL, "mla/vllm/1", only=("fp8-block",), modules=True), "h200_sxm", tmp_path)
    assert (samples.kind, samples.latency_s.tolist()) == ("mla_context_module", [1e-4])


def test_products_that_were_interrupted_are_left_out(tmp_path):
    latency_s = {1: 0.009, 2: 0.0151, 4: 0.0149, 8: 0.01, 16: 0.03}  # of 2 tokens longer than of 8
    rows = {"gemm_dtype": ["fp8"] * 5, "m": list(latency_s), "n": [64] * 5, "k": [64] * 5}
    other = {"gemm_dtype": ["fp8"], "m": [32], "n": [128], "k": [64], "latency": [0.001]}
    rows["latency"] = list(latency_s.values())
    path = tmp_path / "b200_sxm" / "gemm" / "vllm" / "0.24.0" / "gemm_perf.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({name: values + other[name] for name, values in rows.items()}), path)
    (samples,) = read(Tables(WHEEL, "gemm/vllm/0.24.0", interrupted=True), "b200_sxm", tmp_path)
    assert samples.columns["tokens"].tolist() == [1, 4, 8, 16, 32]


def test_tables_that_are_not_there_are_refused(root):
    with pytest.raises(FileError, match=r"0\.25\.0: holds no kernel table"):
        list(read(Tables(WHEEL, "gemm/vllm/0.25.0"), "h100_sxm", root))


def test_sources_are_told_with_the_rows_they_give():
    own = Tables(WHEEL, "gemm/vllm/0.24.0", without=("fp8-block",))
    blocks = Tables(REPOSITORY, "gemm/vllm/0.19.0", only=("fp8-block",))
    fewer = Tables(OLDER_WHEEL, "sglang/0.5.9/gemm_perf.parquet", only=("bf16", "fp8"), least_tokens=1025)
    cut = Tables(WHEEL, "gemm/vllm/0.24.0", only=("fp8",), interrupted=True)
    assert origin_of([own, fewer, cut]).source == (
        f"{WHEEL.source}; bf16, fp8: 1,025 tokens or more in sglang/0.5.9 of {OLDER_WHEEL.source}; "
        "fp8: without rows that were interrupted"
    )
    marlin = Tables(WHEEL, "moe/sglang/0.5.10", only=("int4",), stands_for="mxfp4-marlin")
    origin = origin_of([own, blocks, marlin, Tables(OLDER_WHEEL, "vllm/0.19.0/gemm_perf.parquet")])
    assert origin.source == (
        f"{WHEEL.source}; fp8-block: gemm/vllm/0.19.0 of {REPOSITORY.source}; "
        f"mxfp4-marlin: int4 of moe/sglang/0.5.10; vllm/0.19.0 of {OLDER_WHEEL.source}"
    )
    assert origin.date == OLDER_WHEEL.date
    modules = Tables(WHEEL, "mla/vllm/0.24.0", only=("fp8-block",), modules=True)
    assert origin_of([modules]).source == f"{WHEEL.source}; fp8-block modules of mla/vllm/0.24.0 less their GEMMs"


def test_repeats_are_compared_with_the_first_table_of_a_shape():
    first = products("bf16", "fp8")
    slower = replace(products("bf16"), latency_s=np.array([1e-5, 2e-5, 3e-5]))
    found = repeats([("a", first), ("b", slower), ("c", products("fp8", latency_s=5e-6, tokens=(3, 4)))])
    assert [(repeat.rows, repeat.beside, repeat.shapes) for repeat in found] == [
        ("bf16 of b", "a", 3),
        ("fp8 of c", "a", 1),
    ]
    assert (found[0].p10, found[0].median, found[0].p90) == (1.2, 2.0, 2.8)
    assert found[1].median == 0.5


def test_repeats_within_a_table_are_compared_with_each_other():
    again = replace(products("bf16"), latency_s=np.array([1e-5, 2e-5, 3e-5]))
    (found,) = repeats([("a", joined([products("bf16"), again]))])
    assert (found.rows, found.beside, found.shapes) == ("a, the slowest", "a, the fastest", 3)
    assert (found.p10, found.median, found.p90) == (1.2, 2.0, 2.8)


def test_every_profile_has_one_recipe():
    shipped = [f"{name}/{profile}" for name in accelerator_names() for profile in available_profiles(name)]
    assert sorted(recipe.name for recipe in RECIPES) == sorted(shipped)


def test_launches_slower_than_on_a_chip_that_is_no_faster_were_held_up(tmp_path):
    def write(system, latency):
        rows = {"phase": ["context"] * 4, "batch_size": [1] * 4, "seq_len": [64, 64, 128, 128]}
        rows |= {"num_k_heads": [2] * 4, "head_k_dim": [128] * 4, "num_v_heads": [8] * 4, "head_v_dim": [128] * 4}
        rows |= {"kernel_source": ["conv1d", "delta_rule"] * 2, "latency": latency}
        path = tmp_path / system / "linear_attention" / "sglang" / "1" / "gdn_perf.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(rows), path)

    write("h100_sxm", [0.01, 0.03, 0.02, 0.06])
    write("h200_sxm", [0.01, 0.0318, 0.02, 0.0642])  # 4.5% longer and 5.25%
    chosen = Tables(WHEEL, "linear_attention/sglang/1", held_up_beside="h100_sxm")
    (samples,) = read(chosen, "h200_sxm", tmp_path)
    assert samples.columns["tokens"].tolist() == [64]
    assert origin_of([chosen]).source.endswith("without rows that were slower than on h100_sxm")
