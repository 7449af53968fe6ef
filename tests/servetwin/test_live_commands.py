"""``servetwin live``, ``validate``, ``chat`` and ``calibrate`` on a model so small that steps take a millisecond."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simcore.output.run_folder import RUN_FILES

pytest.importorskip("torch")

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 200,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
    "tie_word_embeddings": True,
}
SCENARIO = """\
model: tiny.json
engine: servetwin-live
cluster: {accelerator: cpu-generic}
memory: {num_gpu_blocks: 40, block_size_tokens: 16}
scheduler:
  batching: {name: chunked-prefill, max_batched_tokens: 16, max_running_requests: 3}
workload:
  requests: 6
  arrivals: {name: poisson, rate_per_s: 200}
  prompt_tokens: {name: uniform, low: 4, high: 30}
  output_tokens: {name: uniform, low: 2, high: 6}
"""
QUICK = ("--weights", "random", "--threads", "1")


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "tiny.json").write_text(json.dumps(CONFIG))
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A calibration of a few seconds, in a process of its own, as it keeps to one processor."""
    folder = tmp_path_factory.mktemp("calibrated")
    (folder / "tiny.json").write_text(json.dumps(CONFIG))
    (folder / "tiny.yaml").write_text(SCENARIO)
    run = calibration(folder, "--minutes", "0.1")
    assert run.returncode == 0, run.stderr
    return folder


def calibration(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "servetwin", "calibrate", "--device", "cpu", "--force", "--clock", "cpu"]
    command += ["--for", str(folder / "tiny.yaml"), "--out", str(folder / "out"), *more]
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)


def test_live_leaves_the_folder_of_a_run(command, tiny, tmp_path):
    ended = command("live", tiny, *QUICK, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(RUN_FILES)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["counts"]["finished"] == 6
    assert summary["partial"] is False


def test_live_refuses_a_device_that_is_not_there(command, tiny):
    ended = command("live", tiny, *QUICK, "--device", "tpu")
    assert (ended.code, ended.out) == (2, "")
    assert "--device is 'tpu', expected cpu or cuda" in ended.err


def test_validation_finds_the_same_decisions(command, tiny, tmp_path):
    ended = command("validate", tiny, *QUICK, "--clock", "cpu", "--most-tokens", "32", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert [regime["regime"] for regime in found["regimes"]] == ["unloaded", "knee", "overload", "KV thrashing"]
    assert all(regime["plans"] and regime["first_difference"] is None for regime in found["regimes"])
    for regime in found["regimes"]:
        errors = {(row["metric"], row["statistic"]): row["error"] for row in regime["times"]}
        # Whether prices are right is for quiet machines to say; here, that they are of the right size.
        assert -0.7 < errors["step_s", "p50"] < 2.0
        assert -0.7 < errors["output_tokens_per_s", "mean"] < 2.0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"steps.csv", "validation.json", "report.html"}


def test_chat_needs_a_model_that_can_talk(command, tiny):
    ended = command("chat", tiny.parent / "nothing")
    assert ended.code == 2
    assert "nothing" in ended.err


def test_calibration_leaves_samples_profile_and_report(calibrated):
    out = calibrated / "out"
    names = {path.name for path in out.iterdir()}
    assert {"samples.jsonl", "samples", "profile", "calibration.json", "report.html"} <= names
    found = json.loads((out / "calibration.json").read_text())
    assert found["measurements"] > 0
    assert found["machine"]["threads"] == "1"
    assert len(found["mixed_steps"]) == 5
    assert {path.suffix for path in (out / "samples").iterdir()} == {".parquet"}
    if os.cpu_count() > 1:
        rows = (out / "profile" / "collective.csv").read_text().splitlines()
        assert [row.split(",")[:4] for row in rows[1:]] == [
            [name, "gloo", "1", "2"] for name in ("all_gather", "all_reduce")
        ]


def test_a_scenario_takes_a_calibration_by_path(command, calibrated, tmp_path):
    out = calibrated / "out"
    (datasheet,) = (path for path in out.iterdir() if path.suffix == ".yaml")
    ended = command(
        "run", calibrated / "tiny.yaml", "--set", f"cluster.accelerator={datasheet}", "--set",
        f"pricing.profile={out / 'profile'}", "--set", "precision={weights: fp32, kv_cache: fp32}", "--json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["counts"]["finished"] == 6


def test_validation_at_a_calibrations_prices_says_which_operators_are_off(command, calibrated, tmp_path):
    quick = ("--clock", "cpu", "--most-tokens", "16", "--set", "workload.requests=3")
    folder = tmp_path / "out"
    ended = command(
        "validate", calibrated / "tiny.yaml", *QUICK, *quick, "--profile", calibrated / "out", "--out", folder
    )
    assert ended.code == 0, ended.err
    found = json.loads((folder / "validation.json").read_text())
    operators = {part["part"]: part for part in found["regimes"][0]["operators"]}
    assert {"GEMMs", "attention", "norm", "rotary_and_kv_write", "sampling"} <= operators.keys()
    assert all(part["live_s"] > 0 for part in operators.values())
    assert len(found["regimes_by_table_of_steps"]) == 4


def test_a_calibration_of_another_machine_is_refused_with_the_reason(command, calibrated, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(calibrated / "out", copy)
    file = copy / "profile" / "profile.yaml"
    lines = ["  torch: '1.0'" if line.startswith("  torch:") else line for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")
    ended = command("validate", calibrated / "tiny.yaml", *QUICK, "--profile", copy, "--out", tmp_path / "out")
    assert ended.code == 2
    assert "and 1.0 in the profile" in ended.err
    assert not (tmp_path / "out").exists()


def test_an_interrupted_calibration_goes_on_and_a_second_one_adds(calibrated):
    log = calibrated / "out" / "samples.jsonl"
    before = log.read_text().count("\n")
    with log.open("a") as file:
        file.write('0123abcd {"name":"cut')
    run = calibration(calibrated, "--minutes", "0.1", "--resume")
    assert run.returncode == 0, run.stderr
    lines = log.read_text().splitlines()
    assert len(lines) >= before
    names = [json.loads(line.partition(" ")[2])["name"] for line in lines[1:]]
    assert len(set(names)) == len(names)


def test_unknown_kernels_are_refused(command, tiny):
    ended = command("calibrate", "--kernels", "gem")
    assert ended.code == 2
    assert "--kernels is 'gem'" in ended.err
    assert "Did you mean 'gemm'?" in ended.err


def test_a_busy_device_is_refused(command, tiny, monkeypatch):
    monkeypatch.setattr("live.measuring.machine.cpu_load", lambda: 0.9)
    ended = command("calibrate", "--device", "cpu", "--for", tiny)
    assert ended.code == 2
    assert "cpu is busy: others use 90% of it" in ended.err


def test_experts_are_measured_and_priced(command, tmp_path):
    experts = {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "moe_intermediate_size": 48,
        "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "head_dim": 8, "hidden_act": "silu",
    }  # fmt: skip
    (tmp_path / "tiny.json").write_text(json.dumps(CONFIG | experts))
    (tmp_path / "tiny.yaml").write_text(SCENARIO)
    run = calibration(tmp_path, "--minutes", "0.1", "--kernels", "gemm,moe,elementwise")
    assert run.returncode == 0, run.stderr
    assert "moe (fp32): " in run.stderr + run.stdout
    out = tmp_path / "out"
    (datasheet,) = (path for path in out.iterdir() if path.suffix == ".yaml")
    ended = command(
        "explain", tmp_path / "tiny.yaml", "--shape", "2x20", "--json", "--set", f"cluster.accelerator={datasheet}",
        "--set", f"pricing.profile={out / 'profile'}", "--set", "precision={weights: fp32, kv_cache: fp32}",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    sources = {term["name"]: term["source"] for term in json.loads(ended.out)[0]["operators"]}
    assert sources["experts"] == "calibrated"
