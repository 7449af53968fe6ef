"""Result files of load generators as measured runs: latencies beside the requests that they are of."""

import json

import pytest
import yaml

from fidelity.bench_latencies import measured_latencies
from fidelity.case import Case, Refusal
from fidelity.execution import simulate_case
from fidelity.posts import read_posts
from simcore.core.errors import FileError, InputError

VLLM = {
    "request_rate": 10.0,
    "input_lens": [300, 300, 300, 300],
    "output_lens": [3, 2, 1, 0],
    "ttfts": [0.02, 0.04, 0.06, 0.0],
    "itls": [[0.01, 0.03], [0.04], [], []],
}
GUIDELLM = {
    "prompt_tokens": 300,
    "output_tokens": 11,
    "request_start_time": 5.0,
    "time_to_first_token_ms": 20.0,
    "inter_token_latency_ms": 7.0,
}


def aiperf(phase="profiling", ttft_ms=21.0):
    return {
        "metadata": {"request_start_ns": 10**18, "benchmark_phase": phase},
        "metrics": {
            "input_sequence_length": {"value": 300},
            "output_sequence_length": {"value": 11},
            "time_to_first_token": {"value": ttft_ms, "unit": "ms"},
            "inter_token_latency": {"value": 7.0, "unit": "ms"},
        },
    }


def written(folder, name, *documents):
    (folder / name).write_text("\n".join(map(json.dumps, documents)))
    return folder / name


def test_vllm_has_lists_of_gaps(tmp_path):
    found = measured_latencies(written(tmp_path, "r.json", VLLM))
    assert found["ttft_s.mean"] == pytest.approx(0.04)
    assert found["tpot_s.mean"] == pytest.approx((0.02 + 0.04) / 2)
    assert found["e2e_s.mean"] == pytest.approx((0.06 + 0.08 + 0.06) / 3)
    assert found["ttft_s.p50"] == pytest.approx(0.04)


def test_guidellm_and_aiperf_have_milliseconds(tmp_path):
    document = {"benchmarks": [{"requests": {"successful": [GUIDELLM]}}]}
    expected = {"ttft_s.mean": 0.02, "tpot_s.mean": 0.007, "e2e_s.mean": 0.02 + 10 * 0.007}
    found = measured_latencies(written(tmp_path, "g.json", document))
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    rows = written(tmp_path, "a.jsonl", aiperf("warmup", 500.0), aiperf())
    assert measured_latencies(rows)["ttft_s.p99"] == pytest.approx(0.021)


def test_a_file_without_latencies_has_none(tmp_path):
    lengths = {key: value for key, value in VLLM.items() if key not in ("ttfts", "itls")}
    assert measured_latencies(written(tmp_path, "r.json", lengths)) == {}
    first_alone = {key: value for key, value in VLLM.items() if key != "itls"}
    assert set(measured_latencies(written(tmp_path, "r.json", first_alone))) == {
        "ttft_s.mean", "ttft_s.p50", "ttft_s.p99",
    }  # fmt: skip


@pytest.mark.parametrize("time", [-1, "soon", True, None, [0.1]])
def test_what_is_no_time_is_told(tmp_path, time):
    broken = VLLM | {"ttfts": [0.02, time, 0.06, 0.0]}
    with pytest.raises(FileError, match=r"row 2: ttfts is .*, expected a number of at least 0"):
        measured_latencies(written(tmp_path, "r.json", broken))


def run_folder(folder, document, **workload):
    scenario = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm"},
        "engine": "vllm@0.12",
        "workload": {"trace": "r.json", "skip_failed": True} | workload,
    }
    (folder / "scenario.yaml").write_text(yaml.safe_dump(scenario))
    written(folder, "r.json", document)
    return folder


def test_a_folder_of_a_scenario_and_its_result_file_is_a_measured_run(tmp_path):
    (tmp_path / "own").mkdir()
    (case,) = read_posts(run_folder(tmp_path / "own", VLLM))
    assert isinstance(case, Case)
    assert (case.labels["engine"], case.labels["version"], case.labels["load"]) == ("vllm", "0.12", "r.json")
    outcome = simulate_case(case, 0)
    assert outcome.simulated["ttft_s.mean"] > 0
    assert abs(outcome.error("tpot_s.mean")) < 2
    assert [one.name for one in read_posts(tmp_path)] == ["own"]


def test_a_folder_without_measured_figures_is_told(tmp_path):
    lengths = {key: value for key, value in VLLM.items() if key not in ("ttfts", "itls")}
    (found,) = read_posts(run_folder(tmp_path, lengths))
    assert isinstance(found, Refusal)
    with pytest.raises(InputError, match=r"workload\.requests is 2, expected nothing, since the latencies"):
        read_posts(run_folder(tmp_path, VLLM, requests=2))
    (tmp_path / "scenario.yaml").write_text("model: llama-3.1-8b\n")
    with pytest.raises(FileError, match=r"holds no measured\.json, expected that, or a trace in workload"):
        read_posts(tmp_path)
