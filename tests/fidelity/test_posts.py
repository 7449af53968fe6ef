"""Posted results are read as measured runs, by today's names; hosts are adapted to them."""

import json

import pytest
import yaml

from fidelity.adaptation import ADAPTED, adapt
from fidelity.case import Case, Outcome, Refusal
from fidelity.evaluated import Evaluated
from fidelity.execution import simulate_case
from fidelity.post_tables import post_tables
from fidelity.posts import read_posts
from simcore.build.simulation import Simulation
from simcore.core.errors import FileError, InputError
from simcore.cost.assumptions import HOST_RANGES
from simcore.scenario.reading import read_scenario

POST = {
    "gpu": "h100-sxm",
    "n": 1,
    "model": "Qwen3-8B",
    "precision": "bf16",
    "engine": "vllm",
    "version": "0.11.0",
    "measured": {"rps": 0.6, "ttft_mean": 59.01, "tpot_mean": 7.28, "itl_mean": 7.2},
    "doubts": "",
}


def post(folder, name="01", scenario=None, **changed):
    where = folder / name
    where.mkdir()
    document = {
        "model": "qwen3-8b",
        "cluster": {"accelerator": "h100-sxm", "tensor_parallel": 1},
        "engine": "vllm-v1",
        "host": {"overlapped": False, "step_s": 0.0014, "per_request_s": 4.3e-05},
        "workload": {
            "requests": 4,
            "arrivals": {"name": "closed-loop", "concurrency": 1},
            "prompt_tokens": {"name": "fixed", "tokens": 200},
            "output_tokens": {"name": "fixed", "tokens": 20},
        },
    }
    (where / "scenario.yaml").write_text(yaml.safe_dump(document | (scenario or {})))
    (where / "measured.json").write_text(json.dumps(POST | changed))
    return where


def test_a_post_is_a_case_of_the_engines_version(tmp_path):
    post(tmp_path)
    (case,) = read_posts(tmp_path)
    assert isinstance(case, Case)
    assert case.document["engine"] == "vllm-v1@0.11.0"
    assert "host" not in case.document  # the version says it
    assert case.measured == pytest.approx({"requests_per_s": 0.6, "ttft_s.mean": 0.05901, "tpot_s.mean": 0.00728})
    scenario = Simulation.prepare(case.document, tmp_path).scenario
    assert (scenario.host.async_scheduling, scenario.scheduler.batching["max_running_requests"]) == (False, 1024)


def test_older_names_and_files_beside_the_scenario_are_found(tmp_path):
    batching = {"name": "prefill-first", "max_running_requests": 8, "max_batched_tokens": 4096}
    lengths = {"name": "empirical", "file": "lengths.csv", "format": "csv"}
    workload = {"requests": 4, "arrivals": {"name": "closed-loop", "concurrency": 1}, "lengths": lengths}
    scenario = {"scheduler": {"batching": batching}, "workload": workload, "engine": "sglang"}
    where = post(tmp_path, scenario=scenario, engine="sglang", version="0.5.8+")
    (where / "lengths.csv").write_text("prompt_tokens,output_tokens\n100,10\n")
    (case,) = read_posts(where)
    assert case.document["engine"] == "sglang@0.5.8"
    assert case.document["scheduler"]["batching"]["name"] == "chunked-prefill-first"
    assert isinstance(simulate_case(case), Outcome)


def test_a_post_without_a_figure_is_refused_with_the_reason(tmp_path):
    post(tmp_path, measured={"itl_mean": 7.2})
    (found,) = read_posts(tmp_path)
    assert isinstance(found, Refusal)
    assert "no figure" in found.reason


def test_what_is_no_post_is_told(tmp_path):
    with pytest.raises(FileError, match=r"holds no measured\.json"):
        read_posts(tmp_path)
    with pytest.raises(FileError, match="no such folder"):
        read_posts(tmp_path / "none")
    where = post(tmp_path, measured={"rps": "many"})
    with pytest.raises(InputError, match=r"measured\.json.*measured\.rps is 'many'"):
        read_posts(where)


def test_posts_with_doubts_count_apart(tmp_path):
    post(tmp_path)
    post(tmp_path, "02", doubts="gpu-doubtful")
    outcomes = tuple(simulate_case(case) for case in read_posts(tmp_path))
    errors, worst = post_tables(Evaluated(outcomes, ()))
    assert [row[:2] for row in errors.rows[:2]] == [("all", 2), ("without doubts", 1)]
    assert [row[0] for row in worst.rows] == ["01"]


def test_a_host_is_adapted_to_runs_and_taken_by_a_scenario(tmp_path):
    post(tmp_path)
    found = adapt([tmp_path])
    assert 0 < len(found.host) <= len(ADAPTED) == 5
    for name, value in found.host.items():
        low, high, _ = HOST_RANGES[name]
        assert low <= value <= high
    before, after = (abs(runs[0].error("ttft_s.mean")) for runs in (found.runs, found.after))
    assert after < 0.1 < before
    assert "before" in found.tables()[1].columns[2]
    (tmp_path / "my-host.yaml").write_text(found.document())
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump({"model": "qwen3-8b", "host": "my-host.yaml"}))
    assert read_scenario(scenario)["host"] == found.host


def test_a_file_of_a_host_holds_nothing_else(tmp_path):
    (tmp_path / "other.yaml").write_text("memory: {}\n")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("model: qwen3-8b\nhost: other.yaml\n")
    with pytest.raises(FileError, match="section host and nothing else"):
        read_scenario(scenario)


def test_runs_of_several_hosts_are_not_fitted_together(tmp_path):
    post(tmp_path)
    post(tmp_path, "02", version="0.19.0")
    with pytest.raises(InputError, match="differs already"):
        adapt([tmp_path])
