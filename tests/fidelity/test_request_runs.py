import json

import numpy as np
import pytest

from fidelity.case import Refusal
from fidelity.load_regimes import REGIMES, regimes_of
from fidelity.replay import Replayed, replay
from fidelity.request_runs import read_request_run
from simcore.build.simulation import Simulation
from simcore.core.errors import FileError, InputError
from tests.fidelity.request_run_folder import META, write_run


def test_latencies_count_from_the_arrival(tmp_path):
    run = read_request_run(write_run(tmp_path / "run"))
    assert np.allclose(run.arrival_s, [0, 1])
    assert np.allclose(run.queue_s, [0, 2])
    assert np.allclose(run.ttft_s, [0.5, 2.5])
    assert np.allclose(run.tpot_s, [0.1, 0.075])
    assert np.allclose(run.e2e_s, [1.5, 4])


def test_a_request_that_waits_while_memory_is_full_is_told_apart(tmp_path):
    run = read_request_run(write_run(tmp_path / "run"))
    assert [REGIMES[place] for place in regimes_of(run)] == ["unloaded", "KV thrashing"]
    path = run.folder / "timeseries.csv"
    path.write_text("t,running,waiting,kv_cache_pct\n1,1,0,0\n2,1,1,0\n")
    assert [REGIMES[place] for place in regimes_of(read_request_run(run.folder))] == ["unloaded", "overload"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("requests.jsonl", '{"input_toks": 5}\n', "requests.jsonl, line 1"),
        ("requests.jsonl", "\n", "requests.jsonl: is empty"),
        ("requests.jsonl", "{\n", "requests.jsonl, line 1: is not valid JSON"),
        ("timeseries.csv", "t,running,waiting,kv_cache_pct\n1,x,0,0\n", "timeseries.csv, line 2: running is 'x'"),
        ("timeseries.csv", "t,running\n1,2\n", "no column 'waiting'"),
        ("meta.json", "{", "meta.json, line 1"),
        ("config.json", '{"nodes": []}', "config.json: nodes"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(tmp_path, file, text, message):
    folder = write_run(tmp_path / "run")
    (folder / file).write_text(text)
    with pytest.raises((FileError, InputError), match=message):
        read_request_run(folder)


def test_a_token_before_its_step_is_refused(tmp_path):
    folder = write_run(tmp_path / "run")
    path = folder / "requests.jsonl"
    path.write_text(path.read_text().replace('"first_token_ts": 53.5', '"first_token_ts": 52.5'))
    with pytest.raises(FileError, match="line 2: has queued_ts"):
        read_request_run(folder)


def test_the_same_requests_are_replayed(tmp_path):
    found = replay(read_request_run(write_run(tmp_path / "run")))
    assert isinstance(found, Replayed)
    assert {figure.metric for figure in found.figures} == {"ttft_s", "tpot_s", "e2e_s", "output_tokens_per_s"}
    mean = next(figure for figure in found.figures if figure.metric == "e2e_s" and figure.regime == "all")
    assert mean.measured == pytest.approx(2.75)
    assert mean.simulated == pytest.approx(found.simulated["e2e_s"].mean())
    assert [series.quantity for series in found.series] == ["running requests", "waiting requests", "KV memory used"]


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ({"model": "some/Model"}, "unknown model some/Model"),
        (
            {"model": "Qwen/Qwen3-30B-A3B", "engine_kwargs": {"data_parallel_size": 2}},
            "data parallelism whose experts all ranks share",
        ),
        ({"engine_kwargs": {"kv_cache_dtype": "int4"}}, "KV precision int4"),
    ],
)
def test_a_run_that_cannot_be_replayed_says_why(tmp_path, meta, reason):
    found = replay(read_request_run(write_run(tmp_path / "run", **meta)))
    assert isinstance(found, Refusal)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("model", "arguments", "cluster", "limits"),
    [
        ("meta-llama/Llama-3.1-8B", {"data_parallel_size": 2}, {"replicas": 2}, (2048, 8)),
        ("meta-llama/Llama-3.1-8B", {"tensor_parallel_size": 2, "enable_expert_parallel": True}, {}, (2048, 8)),
        (
            "Qwen/Qwen3-30B-A3B",
            {"tensor_parallel_size": 2, "enable_expert_parallel": True},
            {"expert_parallel": 2},
            (2048, 8),
        ),
        (
            "Qwen/Qwen3-30B-A3B",
            {"data_parallel_size": 2, "enable_expert_parallel": True},
            {"data_parallel": 2, "expert_parallel": 2},
            (4096, 16),
        ),
    ],
)
def test_accelerators_are_used_as_the_engine_used_them(tmp_path, monkeypatch, model, arguments, cluster, limits):
    prepared = []
    prepare = Simulation.prepare

    def noted(document, base_dir):
        prepared.append(document)
        return prepare(document, base_dir)

    monkeypatch.setattr(Simulation, "prepare", noted)
    limited = META["engine_kwargs"] | arguments
    folder = write_run(tmp_path / "run", model=model, engine_kwargs=limited)
    (folder / "config.json").write_text(json.dumps({"nodes": [{"instances": [{"hardware": "RTXPRO6000"}]}]}))
    found = replay(read_request_run(folder))
    assert isinstance(found, Replayed)
    document = prepared[0]
    assert {name: size for name, size in document["cluster"].items() if name in cluster} == cluster
    batching = document["scheduler"]["batching"]
    assert (batching["max_batched_tokens"], batching["max_running_requests"]) == limits
    assert bool(found.series) == ("replicas" not in cluster)


def test_the_measured_runs_are_read_in_full(shared_data):
    folders = [path.parent for path in (shared_data / "measured" / "vllm-per-request").glob("*/meta.json")]
    runs = [read_request_run(folder) for folder in folders]
    assert [len(run.arrival_s) for run in runs] == [300, 300]
    assert all((run.queue_s >= 0).all() for run in runs)
