import json

import pytest

from fidelity.evaluation import evaluate
from tests.fidelity.engine_run_rows import write_rows
from tests.fidelity.request_run_folder import write_run


@pytest.fixture
def runs(tmp_path):
    return write_rows(tmp_path / "runs.csv", {}, {"id": "two", "mode": "disagg"})


def test_tables_name_errors_and_what_was_not_simulated(command, runs, tmp_path):
    folder = write_run(tmp_path / "measured")
    found = command("fidelity", "--runs", runs, "--per-request", folder, "--jobs", "1")
    assert found.code == 0
    assert "dense, InferenceX rows" in found.out
    assert "disaggregated prefill and decode" in found.out
    assert "measured (vLLM 0.19.0, rtx-4090 x 1)" in found.out


def test_json_holds_every_row(command, runs):
    found = command("fidelity", "--runs", runs, "--json", "--jobs", "1")
    document = json.loads(found.out)
    (case,) = document["engine_runs"]["cases"]
    assert case["errors"]["ttft_s.mean"] == pytest.approx(case["simulated"]["ttft_s.mean"] / 0.1 - 1)
    assert [refusal["name"] for refusal in document["engine_runs"]["not_simulated"]] == ["two"]


def test_bands_say_whether_they_held_what_was_measured(command, tmp_path):
    runs = write_rows(tmp_path / "runs.csv", {"osl": "64"}, {"id": "far", "osl": "64", "silicon_ttft_ms": "100000"})
    folder = write_run(tmp_path / "measured")
    asked = ("fidelity", "--runs", runs, "--per-request", folder, "--json", "--jobs", "1")
    without = json.loads(command(*asked).out)
    assert not any(case["bands"] for case in without["engine_runs"]["cases"])
    document = json.loads(command(*asked, "--bands", "9").out)
    near, far = document["engine_runs"]["cases"]
    for case in (near, far):
        for key, (low, high) in case["bands"].items():
            assert low <= case["simulated"][key] <= high
    assert far["bands"].keys() == {"ttft_s.mean", "tpot_s.mean"}
    held = near["bands"]["ttft_s.mean"][0] <= 0.1 <= near["bands"]["ttft_s.mean"][1]
    assert document["tables"][0]["rows"][0][6] == (0.5 if held else 0.0)
    banded = [figure for figure in document["per_request"][0]["figures"] if figure["band"]]
    assert {figure["regime"] for figure in banded} == {"all"}
    assert all(figure["band"][0] <= figure["simulated"] <= figure["band"][1] for figure in banded)
    assert {figure["metric"] for figure in banded} == {"ttft_s", "tpot_s", "e2e_s"}


def test_a_sample_of_engine_runs_has_bands(tmp_path):
    path = write_rows(tmp_path / "runs.csv", *({"id": str(number), "osl": str(8 + number)} for number in range(5)))
    found = evaluate((path,), jobs=1, replays=9, banded_every=2)
    assert found.engine_runs is not None
    assert [bool(outcome.bands) for outcome in found.engine_runs.outcomes] == [True, False, True, False, True]


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
        ((), "--runs, --per-request, --posts, --references or --adapt"),
        (("--out", "host.yaml"), "--out is 'host.yaml', expected --adapt with it."),
        (("--adapt", "none.csv"), "none.csv: no such file"),
        (("--runs", "none.csv", "--bands", "4"), "--bands is 4, expected 0 for no bands, or 9 to 10000 replays."),
        (("--runs", "none.csv"), "none.csv: no such file"),
        (("--references", "nowhere"), "nowhere: no such folder"),
    ],
)
def test_bad_input_is_one_sentence(command, arguments, message):
    found = command("fidelity", *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.out == ""
