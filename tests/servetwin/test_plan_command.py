"""``servetwin plan`` and ``servetwin sweep`` from the command line."""

import json

import pyarrow.parquet as parquet
import pytest
import yaml

WORKLOAD = {
    "requests": 40,
    "arrivals": {"name": "poisson", "rate_per_s": 10.0},
    "prompt_tokens": {"name": "fixed", "tokens": 100},
    "output_tokens": {"name": "fixed", "tokens": 5},
}


@pytest.fixture
def workload(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump({"model": "qwen2.5-0.5b", "workload": WORKLOAD}))
    return path


def test_a_plan_is_a_folder_with_scenarios_and_launch_lines(command, workload, tmp_path):
    out = tmp_path / "plan"
    options = ("--slo", "ttft_p90=0.5", "--accelerators", "l4", "--vary", "cluster.tensor_parallel=1")
    ended = command("plan", workload, *options, "--most-requests", 1000, "--jobs", 1, "--out", out)
    assert ended.code == 0
    assert "1 × l4" in ended.out
    assert "simulations of" in ended.out
    assert {path.name for path in out.iterdir()} == {"plan.json", "report.html", "launch.txt", "answer-1.yaml"}
    plan = json.loads((out / "plan.json").read_text())
    assert plan["answers"][0]["replicas"] == 1
    assert yaml.safe_load((out / "answer-1.yaml").read_text())["cluster"]["replicas"] == 1
    assert "vllm serve Qwen/Qwen2.5-0.5B" in (out / "launch.txt").read_text()
    assert "<title>small.yaml</title>" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), "slo is missing"),
        (("--slo", "ttft_p99"), "NAME=SECONDS"),
        (("--slo", "tftt_p99=1"), "Did you mean 'ttft_p99'"),
        (("--slo", "ttft_p99=fast"), "a number of seconds"),
        (("--slo", "ttft_p99=1", "--accelerators", "h100"), "Did you mean 'h100-"),
        (("--slo", "ttft_p99=1", "--price", "l4"), "NAME=USD"),
        (("--slo", "ttft_p99=1", "--disaggregate", "1"), "such as 1:2"),
        (("--slo", "ttft_p99=1", "--jobs", "0"), "--jobs"),
        (("--slo", "ttft_p99=1", "--vary", "cluster.replicas=1,2"), "--vary"),
    ],
)
def test_what_is_wrong_with_a_question_is_one_sentence_and_nothing_is_written(
    command, workload, tmp_path, options, error
):
    ended = command("plan", workload, *options, "--out", tmp_path / "plan")
    assert ended.code == 2
    assert error in ended.err
    assert not (tmp_path / "plan").exists()


def test_a_sweep_is_a_table(command, workload, tmp_path):
    out = tmp_path / "sweep"
    asked = ("sweep", workload, "--set", "cluster.accelerator=l4", "--vary", "cluster.replicas=1,2", "--jobs", 1)
    ended = command(*asked, "--out", out)
    assert ended.code == 0
    table = parquet.read_table(out / "sweep.parquet")
    assert table["cluster.replicas"].to_pylist() == [1, 2]
    again = command(*asked, "--out", out)
    assert "2 of 2 cells were there already" in again.err
    printed = json.loads(command(*asked, "--json").out)
    assert [row["ttft_s.p99"] for row in printed] == table["ttft_s.p99"].to_pylist()
