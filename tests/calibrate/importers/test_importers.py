"""Importers of other projects: the right shapes and units, and errors that name file and line."""

import shutil

import pytest

from calibrate.importers import apex_plus, llmservingsim, splitwise, vidur
from simcore.core.errors import FileError, UnknownNameError


@pytest.fixture
def profiles(shared_data):
    return shared_data / "profiles"


def test_llmservingsim_knows_the_shapes_of_layers(profiles):
    tables = list(llmservingsim.read_device(profiles / "llmservingsim", "RTX4090"))
    shapes = {(t.columns["n"][0], t.columns["k"][0]) for t in tables if t.kind == "gemm"}
    assert shapes == {(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096)}
    kinds = {table.kind for table in tables}
    assert kinds == {
        "gemm",
        "elementwise",
        "layer",
        "context_attention",
        "generation_attention",
        "mixed_generation",
        "mixed_attention",
    }
    with pytest.raises(UnknownNameError):
        list(llmservingsim.read_device(profiles / "llmservingsim", "RTX4080"))


def test_llmservingsim_knows_what_norms_and_activations_move(profiles):
    tables = list(llmservingsim.read_device(profiles / "llmservingsim", "RTXPRO6000"))
    own = [table.columns for table in tables if table.kind == "elementwise"]
    widths = sorted((str(columns["operator"][0]), int(columns["bytes_per_token"][0])) for columns in own)
    assert widths == [
        *(("activation", 3 * 2 * width) for width in (14336 // 2, 25600 // 2, 14336, 25600)),
        *(("norm", 4 * 2 * hidden) for hidden in (2048, 4096, 5120)),  # once, though two ranks repeat them
        *(("query_key_norm", 2 * 2 * 128 * heads // 2) for heads in (32 + 4, 64 + 8)),
        *(("sampling", 10 * logits) for logits in (128256, 151936, 151936)),  # two models of one vocabulary
    ]


def test_vidur_layers_and_collectives(profiles):
    path = profiles / "vidur/compute/h100/meta-llama/Llama-2-7b-hf/mlp.csv"
    tables = list(vidur.read_layers(path, "h100-sxm"))
    whole = [table.select(table.columns["tokens"] == 4096) for table in tables]
    assert {(int(t.columns["n"].max()), int(t.columns["k"].max())) for t in whole} == {
        (12288, 4096),
        (4096, 4096),
        (22016, 4096),
        (4096, 11008),
    }
    collective = vidur.read_collective(profiles / "vidur/network/h100_dgx/all_reduce.csv", "h100-sxm")
    assert set(collective.columns["ranks_per_node"]) <= {1, 2, 4, 8}


def test_splitwise_and_apex_plus(profiles):
    passes = list(splitwise.read_passes(profiles / "splitwise-sim/perf_model.csv"))
    assert {(table.kind, table.accelerator) for table in passes} == {
        (kind, name) for kind in ("prompt_pass", "token_pass") for name in ("a100-sxm-80gb", "h100-sxm")
    }
    collectives = list(apex_plus.read_collectives(profiles / "apex_plus"))
    assert {table.accelerator for table in collectives} == {"h100-sxm", "h200-sxm"}
    assert all((table.latency_s > 1e-6).all() for table in collectives)


def test_broken_csv_rows_name_file_and_line(profiles, tmp_path):
    source = profiles / "vidur/network/h100_dgx/all_reduce.csv"
    for old, new, message in (
        ("0.037", "fast", r"all_reduce.csv, line 2: time_stats.all_reduce.median is 'fast', expected a number"),
        (",8,2048,", ",8,", r"all_reduce.csv, line 2: 11 columns where the header has 12"),
    ):
        path = tmp_path / "all_reduce.csv"
        shutil.copy(source, path)
        path.write_text(path.read_text().replace(old, new, 1))
        with pytest.raises(FileError, match=message):
            vidur.read_collective(path, "h100-sxm")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("n_head", "0", "n_head is '0', expected a whole number of at least 1"),
        ("num_tensor_parallel_workers", "0", "num_tensor_parallel_workers is '0', expected a whole number"),
        ("use_gated_mlp", "maybe", "use_gated_mlp is 'maybe', expected True or False"),
    ],
)
def test_broken_layers_of_vidur_name_file_and_line(profiles, tmp_path, column, value, message):
    source = min(profiles.glob("vidur/compute/h100/*/*/mlp.csv"))
    header, first, *_ = source.read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    cells[header.split(",").index(column)] = value
    path = tmp_path / "mlp.csv"
    path.write_text(f"{header}\n{','.join(cells)}\n", encoding="utf-8")
    with pytest.raises(FileError, match=f"mlp.csv, line 2: {message}"):
        list(vidur.read_layers(path, "h100-sxm"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("meta.yaml", "a: 1", "meta.yaml: has no vllm_version"),
        ("meta.yaml", "", "meta.yaml: has no vllm_version"),
        (
            "tp1/attention.csv",
            "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n4,0,-1,9,5.0",
            "line 2: n_decode is",
        ),
        ("tpx/dense.csv", "", "tpx: expected a folder named tp"),
    ],
)
def test_a_broken_folder_of_llmservingsim_names_what_is(profiles, tmp_path, name, text, message):
    shutil.copytree(profiles / "llmservingsim/RTX4090", tmp_path / "RTX4090")
    path = tmp_path / "RTX4090/meta-llama/Llama-3.1-8B/bf16" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        list(llmservingsim.read_device(tmp_path, "RTX4090"))


def test_decodes_without_a_chunk_are_enough(profiles, tmp_path):
    shutil.copytree(profiles / "llmservingsim/RTX4090", tmp_path / "RTX4090")
    path = tmp_path / "RTX4090/meta-llama/Llama-3.1-8B/bf16/tp1/attention.csv"
    path.write_text("prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,2,64,5.0\n", encoding="utf-8")
    tables = {table.kind: len(table) for table in llmservingsim.read_device(tmp_path, "RTX4090")}
    assert (tables["generation_attention"], tables["context_attention"], tables["mixed_generation"]) == (1, 0, 0)
