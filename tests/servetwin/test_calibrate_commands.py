"""``servetwin calibrate``: from public tables to a profile."""

import pytest
from typer.testing import CliRunner

from servetwin.app import app
from simcore.core.errors import FileError, InputError
from simcore.cost.calibrated import load_profile

HEADER = "kind,accelerator,engine,version,dtype,tokens,n,k,latency_s"


def gemm_rows(n=4096, k=4096):
    """A row for each of some token counts."""
    return [f"gemm,h100-sxm,own,1,bf16,{tokens},{n},{k},{1e-5 * (1 + tokens):.9f}" for tokens in (1, 4, 16, 64, 256)]


def samples(path, rows, header=HEADER, start=""):
    """A file of measurements in servetwin's own form."""
    path.write_text(start + "\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_import_then_fit_gives_a_profile(shared_data, tmp_path):
    root = str(shared_data / "profiles" / "aiconfigurator")
    command = ["calibrate", "import", "aiconfigurator", "--system", "a100_sxm", "--root", root]
    done = CliRunner().invoke(app, [*command, "--engine", "nccl", "--out", str(tmp_path / "samples")])
    assert done.exit_code == 0, done.output
    (file,) = (tmp_path / "samples").iterdir()
    assert file.name == "a100-sxm-80gb.nccl-2.27.3.collective.csv"
    done = CliRunner().invoke(app, ["calibrate", "fit", str(file), "--out", str(tmp_path / "own")])
    assert done.exit_code == 0, done.output
    assert "held-out points" in done.output
    profile = load_profile("a100-sxm-80gb", str(tmp_path / "own"))
    assert profile.collective("all_gather", "nccl", 8).seconds(1 << 20) > 0


def test_all_that_was_imported_can_be_fitted_though_nothing_is_to_whole_layers(shared_data, tmp_path):
    root = str(shared_data / "profiles" / "llmservingsim")
    command = ["calibrate", "import", "llmservingsim", "--system", "RTX4090", "--root", root]
    assert CliRunner().invoke(app, [*command, "--out", str(tmp_path)]).exit_code == 0
    files = sorted(str(path) for path in tmp_path.glob("*.csv"))
    done = CliRunner().invoke(app, ["calibrate", "fit", *files, "--out", str(tmp_path / "own")])
    assert done.exit_code == 0, done.output
    assert "layer.csv: left out, since nothing is fitted to layer" in done.output
    alone = next(file for file in files if file.endswith(".layer.csv"))
    done = CliRunner().invoke(app, ["calibrate", "fit", alone, "--out", str(tmp_path / "none")])
    assert "kind is 'layer', expected one of" in str(done.exception)


def test_data_types_that_nothing_is_fitted_to_are_left_out_and_told(tmp_path):
    older = tmp_path / "root" / "a100_sxm" / "trtllm" / "1.0.0"
    older.mkdir(parents=True)
    rows = ["gemm_dtype,m,n,k,latency", "int8_wo,1,64,64,0.01", "sq,1,64,64,0.01", "int8_wo,2,64,64,0.01"]
    (older / "gemm_perf.txt").write_text("\n".join(rows), encoding="utf-8")
    command = ["calibrate", "import", "aiconfigurator", "--system", "a100_sxm", "--root", str(tmp_path / "root")]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "samples")])
    assert done.exit_code == 0, done.output
    assert "2 samples of dtype int8_wo left out, since nothing is fitted to it" in done.output
    (file,) = (tmp_path / "samples").iterdir()
    assert [line.split(",")[4] for line in file.read_text(encoding="utf-8").splitlines()] == ["dtype", "int8"]
    (older / "gemm_perf.txt").write_text("\n".join(rows[:2]), encoding="utf-8")
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "none")])
    assert "gemm_perf.txt: no samples of kernels that engines run and something is fitted to" in done.output
    assert "expected a source of measurements of aiconfigurator that something is fitted to" in str(done.exception)


def test_a_profile_is_of_one_engine_whose_collectives_may_be_those_of_nccl(tmp_path):
    rows = gemm_rows() + gemm_rows(n=8192) + gemm_rows(k=8192)
    own = samples(tmp_path / "own.csv", rows)
    other = samples(tmp_path / "other.csv", [row.replace(",own,1,", ",own,2,") for row in rows])
    header = "kind,accelerator,engine,version,operation,implementation,nodes,ranks_per_node,bytes,latency_s"
    sizes = [
        f"collective,h100-sxm,nccl,2.29,all_reduce,nccl,1,2,{2**power},{1e-5 + 2**power * 1e-11}"
        for power in range(9, 30)
    ]
    nccl = samples(tmp_path / "nccl.csv", sizes, header)
    done = CliRunner().invoke(app, ["calibrate", "fit", own, other, "--out", str(tmp_path / "both")])
    assert "the files' engine and version is 'own 1, own 2', expected one in all files" in str(done.exception)
    done = CliRunner().invoke(app, ["calibrate", "fit", nccl, own, "--out", str(tmp_path / "one")])
    assert done.exit_code == 0, done.output
    profile = load_profile("h100-sxm", str(tmp_path / "one"))
    assert profile.name == "h100-sxm/own-1"
    stated = tmp_path / "one" / "profile.yaml"
    text = stated.read_text(encoding="utf-8")
    shares = [line for line in text.splitlines() if line.strip().startswith("within_")]
    assert profile.errors["gemm"]["all"].within_10_percent is not None
    assert len(shares) == 2 * sum(len(by_group) for by_group in profile.errors.values())
    # One made before shares were stated has none.
    stated.write_text("\n".join(line for line in text.splitlines() if line not in shares), encoding="utf-8")
    assert load_profile("h100-sxm", str(tmp_path / "one")).errors["gemm"]["all"].within_10_percent is None


def test_samples_faster_than_the_datasheet_are_told(tmp_path):
    rows = [row for n in (4096, 8192, 16384) for row in gemm_rows(n=n)]
    tokens = "gemm,h100-sxm,own,1,bf16,4096,4096,4096"
    files = samples(tmp_path / "own.csv", [*rows, f"{tokens},1e-6"])
    done = CliRunner().invoke(app, ["calibrate", "fit", files, "--out", str(tmp_path / "own")])
    said = " ".join(done.output.split())
    assert "own.csv are faster than the datasheet of h100-sxm lets them be, the first on line 17" in said
    strange = samples(
        tmp_path / "strange.csv", [row.replace(",h100-sxm,", ",h100,") for row in [*rows, f"{tokens},1e-6"]]
    )
    done = CliRunner().invoke(app, ["calibrate", "fit", strange, "--out", str(tmp_path / "strange")])
    assert (done.exit_code, "Warning" in done.output) == (0, False)


def test_decodes_of_an_unknown_cache_or_of_no_context_are_refused(tmp_path):
    header = "kind,accelerator,engine,version,kv_dtype,heads,kv_heads,head_dim,window,batch,context,latency_s"
    for changed, message in (("foo,8,8,128,0,1,16", "kv_dtype"), ("bf16,8,8,128,0,1,0", "line 2: context is 0")):
        file = samples(tmp_path / "own.csv", [f"generation_attention,h100-sxm,own,1,{changed},1e-5"], header)
        done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
        assert isinstance(done.exception, FileError | InputError)
        assert message in str(done.exception)


def test_what_is_missing_is_said():
    for command in (["llmservingsim", "--root", "."], ["vidur"]):
        done = CliRunner().invoke(app, ["calibrate", "import", *command])
        assert isinstance(done.exception, InputError)
        assert "is not given, expected one for this source" in str(done.exception)


def test_a_folder_without_measurements_is_named(tmp_path):
    done = CliRunner().invoke(app, ["calibrate", "import", "vidur", "--root", str(tmp_path)])
    assert str(done.exception).startswith(f"--root is {str(tmp_path)!r}, expected a source of measurements of vidur")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("notes.txt", "holds 'notes.txt', which is no part of a profile and which writing there would delete"),
        ("gemm.csv", "holds 'gemm.csv' but no whole profile, and writing there would delete it"),
    ],
)
def test_a_profile_never_takes_the_place_of_other_files(tmp_path, name, message):
    file = samples(tmp_path / "mine.csv", gemm_rows())
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / name).write_text("kept")
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "precious")])
    assert isinstance(done.exception, FileError)
    assert message in str(done.exception)
    assert (tmp_path / "precious" / name).read_text() == "kept"


def test_a_profile_takes_the_place_of_one_before(tmp_path):
    for n in (4096, 8192):
        file = samples(tmp_path / "mine.csv", gemm_rows(n))
        done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
        assert done.exit_code == 0, done.output
    assert load_profile("h100-sxm", str(tmp_path / "own")).ranges["gemm"]["n"] == (8192, 8192)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "own"]


def test_where_nothing_can_be_written_is_said(shared_data, tmp_path):
    file = samples(tmp_path / "mine.csv", gemm_rows())
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", file])
    assert isinstance(done.exception, FileError)
    root = ["--root", str(shared_data / "profiles" / "apex_plus")]
    done = CliRunner().invoke(app, ["calibrate", "import", "apex-plus", *root, "--out", file])
    assert isinstance(done.exception, FileError)


def test_a_file_saved_by_a_spreadsheet_is_read(tmp_path):
    file = samples(tmp_path / "mine.csv", gemm_rows(), start="\ufeff")
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
    assert done.exit_code == 0, done.output


def test_two_columns_of_one_name_are_refused(tmp_path):
    file = samples(tmp_path / "mine.csv", [f"{row},7" for row in gemm_rows()], f"{HEADER},tokens")
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
    assert "line 1: two columns are called 'tokens'" in str(done.exception)


def test_a_product_of_no_tokens_names_file_and_line(tmp_path):
    file = samples(tmp_path / "mine.csv", [*gemm_rows(), "gemm,h100-sxm,own,1,bf16,0,4096,4096,1e-5"])
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
    assert "mine.csv, line 7: tokens is 0, expected a whole number of at least 1" in str(done.exception)


def test_more_kv_heads_than_heads_name_file_and_line(tmp_path):
    header = "kind,accelerator,engine,version,kv_dtype,heads,kv_heads,head_dim,window,batch,context,latency_s"
    file = samples(tmp_path / "mine.csv", ["generation_attention,h100-sxm,own,1,bf16,8,16,128,0,1,64,1e-5"], header)
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
    assert "mine.csv, line 2: kv_heads is 16, expected no more than there are heads" in str(done.exception)


@pytest.mark.parametrize(
    ("chosen", "ranks", "message"),
    [
        (600, 1, "line 2: experts_per_token is 600, expected no more than there are experts"),
        (8, 1024, "line 2: expert_parallel is 1024, expected no more than there are experts"),
    ],
)
def test_more_experts_than_there_are_name_file_and_line(tmp_path, chosen, ranks, message):
    header = (
        "kind,accelerator,engine,version,dtype,distribution,hidden,intermediate,experts_per_token,experts,"
        "tensor_parallel,expert_parallel,tokens,latency_s"
    )
    row = f"moe,h100-sxm,own,1,bf16,balanced,2048,512,{chosen},512,1,{ranks},1,1e-5"
    file = samples(tmp_path / "mine.csv", [row], header)
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
    assert message in str(done.exception)


def test_an_unknown_collective_is_refused(tmp_path):
    header = "kind,accelerator,engine,version,operation,implementation,nodes,ranks_per_node,bytes,latency_s"
    rows = [f"collective,h100-sxm,own,1,all_redcue,nccl,1,8,{2**size},1e-5" for size in range(10, 20)]
    file = samples(tmp_path / "mine.csv", rows, header)
    done = CliRunner().invoke(app, ["calibrate", "fit", file, "--out", str(tmp_path / "own")])
    assert "operation is 'all_redcue', expected one of " in str(done.exception)
    assert "Did you mean 'all_reduce'?" in str(done.exception)
    assert not (tmp_path / "own").exists()


def test_passes_are_found_in_their_folder(shared_data, tmp_path):
    root = str(shared_data / "profiles" / "splitwise-sim")
    done = CliRunner().invoke(app, ["calibrate", "import", "splitwise", "--root", root, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
