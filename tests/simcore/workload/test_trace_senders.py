"""Columns of a trace that say who sent a request."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simcore.core.errors import FileError
from simcore.workload import NO_OUTPUT_LIMIT
from simcore.workload.recorded import replay
from simcore.workload.traces import Columns, read_trace

HEADER = "arrival_s,prompt_tokens,output_tokens,who,level,cap\n"
COLUMNS = Columns(tenant="who", priority="level", max_output_tokens="cap")
ROWS = [(0, 1, 10, "b", 2, 20), (1, 2, 20, "a", 0, 15), (2, 3, 30, "b", 1, None), (3, 4, 40, None, None, 40)]


def write(folder, kind):
    path = folder / f"t.{kind}"
    names = HEADER.strip().split(",")
    if kind == "csv":
        lines = [",".join("" if value is None else str(value) for value in row) for row in ROWS]
        path.write_text(HEADER + "\n".join(lines))
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in ROWS))
    else:
        pq.write_table(pa.table(dict(zip(names, map(list, zip(*ROWS, strict=True)), strict=True))), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_every_kind_of_file(tmp_path, kind):
    trace = read_trace(write(tmp_path, kind), columns=COLUMNS)
    assert trace.tenants == ("b", "a", "")  # in order of appearance
    assert trace.tenant.tolist() == [0, 1, 0, 2]
    assert trace.priority.tolist() == [2, 0, 1, 0]
    assert trace.max_output_tokens.tolist() == [20, 15, NO_OUTPUT_LIMIT, 40]
    assert trace.output_tokens.tolist() == [10, 20, 30, 40]


def test_columns_are_read_only_where_named(tmp_path):
    path = write(tmp_path, "csv")
    trace = read_trace(path)
    assert (trace.tenant, trace.tenants, trace.priority, trace.max_output_tokens) == (None, (), None, None)
    trace = read_trace(path, columns=Columns(priority="level"))
    assert (trace.tenant, trace.tenants, trace.priority.tolist()) == (None, (), [2, 0, 1, 0])


def test_a_replay_ends_outputs_at_their_limits_and_says_so(tmp_path):
    workload = replay(write(tmp_path, "csv"), columns=COLUMNS)
    assert workload.requests.output_tokens.tolist() == [10, 15, 30, 40]
    (notice,) = workload.notices
    assert notice.endswith("t.csv: 1 outputs are longer than their limit and end there.")


def test_a_window_and_batches_keep_requests_whole(tmp_path):
    workload = replay(write(tmp_path, "csv"), columns=COLUMNS, window_s=(1, 3))
    assert workload.requests.priority.tolist() == [0, 1]
    assert [workload.requests.tenants[i] for i in workload.requests.tenant] == ["a", "b"]
    assert workload.requests.max_output_tokens.tolist() == [15, NO_OUTPUT_LIMIT]


def test_sorting_keeps_requests_whole(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "2,1,1,late,2,9\n0,2,2,early,0,8\n1,3,0,failed,1,7\n")
    trace = read_trace(path, columns=COLUMNS, sort=True, skip_failed=True)
    assert [trace.tenants[i] for i in trace.tenant] == ["early", "late"]
    assert np.array([trace.priority, trace.max_output_tokens]).tolist() == [[0, 2], [8, 9]]


def test_whole_numbers_are_names_too(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1, "who": 7}\n')
    assert read_trace(tmp_path / "t.jsonl", columns=Columns(tenant="who")).tenants == ("7",)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (Columns(tenant="whom"), r"has no column 'whom' of format csv \(did you mean 'who'\?\)"),
        (Columns(priority="priority"), "has no column 'priority' of format csv"),
        (Columns(max_output_tokens="caps"), r"has no column 'caps' of format csv \(did you mean 'cap'\?\)"),
    ],
)
def test_a_named_column_must_be_there(tmp_path, columns, problem):
    with pytest.raises(FileError, match=problem):
        read_trace(write(tmp_path, "csv"), columns=columns)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("b,-1,5", "line 2: level is '-1', expected a whole number of at least 0"),
        ("b,1.5,5", "line 2: level is '1.5', expected a whole number of at least 0"),
        ("b,2147483648,5", "line 2: level is '2147483648', expected at most 2147483647"),
        ("b,high,5", "line 2: level is 'high', expected a whole number"),
        ("b,1,0", "line 2: cap is '0', expected a whole number of at least 1"),
        ("b,1,many", "line 2: cap is 'many', expected a whole number"),
    ],
)
def test_a_broken_cell_names_file_and_line(tmp_path, row, problem):
    (tmp_path / "t.csv").write_text(f"{HEADER}0,1,1,{row}\n")
    with pytest.raises(FileError, match=problem):
        read_trace(tmp_path / "t.csv", columns=COLUMNS)


@pytest.mark.parametrize("value", ["true", "1.5", "[1]"])
def test_a_tenant_is_text(tmp_path, value):
    (tmp_path / "t.jsonl").write_text(f'{{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1, "who": {value}}}\n')
    with pytest.raises(FileError, match=r"line 1: who is .*, expected text"):
        read_trace(tmp_path / "t.jsonl", columns=Columns(tenant="who"))
