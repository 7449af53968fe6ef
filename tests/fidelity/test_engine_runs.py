"""Files of measured engine runs: what is read of them, and what is refused by file and line."""

import re
from datetime import date

import pytest

from fidelity.engine_runs import read_engine_runs
from simcore.core.errors import FileError
from tests.fidelity.engine_run_rows import write_rows


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("isl", "many"),
        ("isl", "0"),
        ("silicon_ttft_ms", ""),
        ("silicon_tpot_ms", "-1"),
        ("silicon_tpot_ms", "nan"),
        ("tp_size", "2.5"),
        ("model_path", ""),
    ],
)
def test_a_broken_row_names_file_line_and_column(tmp_path, column, value):
    path = write_rows(tmp_path / "runs.csv", {}, {column: value})
    with pytest.raises(FileError, match=rf"runs\.csv, line 3: {column} is"):
        read_engine_runs(path)


def test_whole_numbers_may_be_written_as_a_column_with_gaps_has_them(tmp_path):
    (run,) = read_engine_runs(write_rows(tmp_path / "runs.csv", {"isl": "1024.0", "tp_size": "4.0"}))
    assert (run.prompt_tokens, run.tensor_parallel) == (1024, 4)


def test_a_day_that_is_none_names_file_and_line(tmp_path):
    source = "db-dump/2026-04-27; silicon_concurrency=4; measured=2026-13-01T00:00:00.000Z"
    path = write_rows(tmp_path / "runs.csv", {}, {"silicon_data_source": source})
    with pytest.raises(FileError, match=r"runs\.csv, line 3: measured=2026-13-01 names no day"):
        read_engine_runs(path)


@pytest.mark.parametrize("stated", ["abc", "0", "", "-4", "4.5"])
def test_a_concurrency_that_is_none_names_file_and_line(tmp_path, stated):
    source = f"db-dump/2026-04-27; silicon_concurrency={stated}; measured=2026-01-01"
    path = write_rows(tmp_path / "runs.csv", {}, {"silicon_data_source": source})
    with pytest.raises(FileError, match=rf"runs\.csv, line 3: silicon_concurrency is '{re.escape(stated)}', expected"):
        read_engine_runs(path)


def test_a_file_without_rows_is_refused(tmp_path):
    with pytest.raises(FileError, match="has no rows"):
        read_engine_runs(write_rows(tmp_path / "runs.csv"))


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="no column 'id'"):
        read_engine_runs(path)


def test_a_row_may_state_when_it_was_measured(tmp_path):
    stated = {"silicon_data_source": "source_file=2026-04-06.csv; silicon_concurrency=4; measured=2025-12-08T00:00"}
    dated, undated = read_engine_runs(write_rows(tmp_path / "runs.csv", stated, {}))
    assert (dated.measured_on, undated.measured_on) == (date(2025, 12, 8), None)
