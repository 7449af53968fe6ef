import json

import pytest

from tests.simcore.fidelity.engine_run_rows import write_rows
from tests.simcore.fidelity.request_run_folder import write_run


@pytest.fixture
def runs(tmp_path):
    return write_rows(tmp_path / "runs.csv", {}, {"id": "two", "mode": "disagg"})


def test_tables_name_errors_and_what_was_not_simulated(command, runs, tmp_path):
    folder = write_run(tmp_path / "measured")
    found = command("fidelity", "--runs", runs, "--per-request", folder, "--jobs", "1")
    assert found.code == 0
    assert "dense, known harness" in found.out
    assert "disaggregated prefill and decode" in found.out
    assert "measured (vLLM 0.19.0, rtx-4090 x 1)" in found.out


def test_json_holds_every_row(command, runs):
    found = command("fidelity", "--runs", runs, "--json", "--jobs", "1")
    document = json.loads(found.out)
    (case,) = document["engine_runs"]["cases"]
    assert case["errors"]["ttft_s.mean"] == pytest.approx(case["simulated"]["ttft_s.mean"] / 0.1 - 1)
    assert [refusal["name"] for refusal in document["engine_runs"]["not_simulated"]] == ["two"]


def test_a_measurement_counts_once(command, tmp_path):
    path = write_rows(tmp_path / "runs.csv", {}, {"id": "again"}, {"id": "other", "silicon_ttft_ms": "101"})
    document = json.loads(command("fidelity", "--runs", path, "--json", "--jobs", "1").out)
    assert [case["name"] for case in document["engine_runs"]["cases"]] == ["one", "other"]
    assert [refusal["reason"] for refusal in document["engine_runs"]["not_simulated"]] == [
        "the figures of a row before, again"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--runs, --per-request or --references"),
        (("--runs", "none.csv"), "none.csv: no such file"),
        (("--references", "nowhere"), "nowhere: no such folder"),
    ],
)
def test_bad_input_is_one_sentence(command, arguments, message):
    found = command("fidelity", *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.out == ""
