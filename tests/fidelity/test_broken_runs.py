"""Measured runs that cannot be counted with are refused, naming file and line."""

import json

import pytest

from fidelity.engine_runs import read_engine_runs
from fidelity.request_runs import read_request_run
from simcore.core.errors import ServetwinError
from tests.fidelity.engine_run_rows import write_rows
from tests.fidelity.request_run_folder import LINES, TIMES, write_run

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"output_toks": 10**30}, "output_toks is 1000000000000000000000000000000, expected a whole number"),
        ({"last_token_ts": 1e300}, "last_token_ts is 1e\\+300, expected"),
        ({"queued_ts": 5.0, "scheduled_ts": 5.0, "first_token_ts": 5.0, "last_token_ts": 5.0}, "has no time between"),
    ],
)
def test_a_request_beyond_bounds_names_its_line(tmp_path, change, said):
    folder = write_run(tmp_path / "run")
    (folder / "requests.jsonl").write_text(
        json.dumps({**LINES[0], **TIMES[0]}) + "\n" + json.dumps({**LINES[1], **TIMES[1], **change})
    )
    with pytest.raises(ServetwinError, match=f"requests.jsonl, line 2: {said}"):
        read_request_run(folder)


@pytest.mark.parametrize("text", ['{"input_toks": ' + "9" * 5000 + "}", DEEP, "NaN", "1e999"])
def test_a_line_that_no_parser_takes_names_its_line(tmp_path, text):
    folder = write_run(tmp_path / "run")
    (folder / "requests.jsonl").write_text(text)
    with pytest.raises(ServetwinError, match=r"requests.jsonl, line 1: "):
        read_request_run(folder)


def test_meta_data_nested_too_deeply(tmp_path):
    folder = write_run(tmp_path / "run")
    (folder / "meta.json").write_text(DEEP)
    with pytest.raises(ServetwinError, match=r"meta.json: not valid JSON \(it is nested too deeply\)"):
        read_request_run(folder)


def test_a_year_that_no_clock_knows(tmp_path):
    with pytest.raises(ServetwinError, match=r"meta.json: started_at is '0001-01-01 00:00:00'"):
        read_request_run(write_run(tmp_path / "run", started_at="0001-01-01T00:00:00"))


@pytest.mark.parametrize("cell", ["inf", "nan", "-1", "1e300", "x" * 5000])
def test_a_series_that_is_no_number(tmp_path, cell):
    folder = write_run(tmp_path / "run")
    (folder / "timeseries.csv").write_text(f"t,running,waiting,kv_cache_pct\n{cell},1,1,1\n")
    with pytest.raises(ServetwinError, match=r"timeseries.csv, line 2: t is '.*', expected a number") as refused:
        read_request_run(folder)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "change",
    [
        {"isl": "9" * 5000},
        {"isl": "²"},
        {"silicon_ttft_ms": "5e-324"},
        {"silicon_tpot_ms": "1e300"},
        {"silicon_data_source": "db-dump/2026-04-27; silicon_concurrency=" + "9" * 5000},
    ],
)
def test_engine_runs_beyond_bounds(tmp_path, change):
    with pytest.raises(ServetwinError, match=r"runs.csv, line 2: .* is '.*', expected") as refused:
        read_engine_runs(write_rows(tmp_path / "runs.csv", change))
    assert len(str(refused.value)) < 500
