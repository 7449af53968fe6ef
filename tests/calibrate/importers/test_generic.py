"""Measurements in servetwin's own form, as CSV and as Parquet."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrate.importers.generic import read_samples, write_samples
from calibrate.samples import SampleTable
from simcore.core.errors import FileError

PRODUCTS = SampleTable(
    "gemm",
    "h100-sxm",
    "vllm",
    "0.19.0",
    {"dtype": np.full(3, "bf16"), "tokens": np.array([1, 2, 4]), "n": np.full(3, 64), "k": np.full(3, 64)},
    np.array([1e-5, 1e-5, 2e-5]),
    "made-up",
    np.arange(1, 4),
)


def test_own_form_goes_round(tmp_path):
    samples = PRODUCTS
    path = tmp_path / "own.csv"
    write_samples(samples, path)
    again = read_samples(path)
    assert (again.kind, again.accelerator, again.engine, again.version) == ("gemm", "h100-sxm", "vllm", "0.19.0")
    assert again.latency_s == pytest.approx(samples.latency_s)
    assert {name: values.tolist() for name, values in again.columns.items()} == {
        name: values.tolist() for name, values in samples.columns.items()
    }


def test_own_form_as_parquet(tmp_path):
    row = {"kind": "gemm", "accelerator": "h200-sxm", "engine": "servetwin", "version": "1", "dtype": "bf16"}
    rows = [{**row, "tokens": tokens, "n": 64, "k": 32, "latency_s": 1e-6 * tokens, "repeats": 9} for tokens in (1, 2)]
    path = tmp_path / "gemm.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    samples = read_samples(path)
    assert (samples.kind, samples.accelerator) == ("gemm", "h200-sxm")
    assert samples.columns["tokens"].tolist() == [1, 2]
    assert samples.latency_s.tolist() == [1e-6, 2e-6]
    pq.write_table(pa.Table.from_pylist([rows[0], {**rows[1], "n": None}]), path)
    with pytest.raises(FileError, match=r"gemm.parquet, line 2: n is '', expected a number"):
        read_samples(path)
    path.write_bytes(b"no table")
    with pytest.raises(FileError, match=r"gemm.parquet: cannot be read"):
        read_samples(path)
    for missing in ("none.csv", "none.parquet"):
        with pytest.raises(FileError, match=r"none\.\w+: no such file\.$"):
            read_samples(tmp_path / missing)
    with pytest.raises(FileError, match=r"is a folder, expected a CSV file\.$"):
        read_samples(tmp_path)


@pytest.mark.parametrize(
    ("line", "column", "value", "message"),
    [
        (2, "version", "0.20", "line 3: version is '0.19.0' in the first row but differs"),
        (1, "tokens", "1.5", "line 2: tokens is '1.5', expected a whole number"),
        (3, "latency_s", "", "line 4: latency_s is '', expected a number"),
    ],
)
def test_broken_rows_of_own_form(tmp_path, line, column, value, message):
    path = tmp_path / "own.csv"
    write_samples(PRODUCTS, path)
    rows = list(csv.reader(path.read_text().splitlines()))
    rows[line][rows[0].index(column)] = value
    path.write_text("\n".join(",".join(row) for row in rows))
    with pytest.raises(FileError, match=message):
        read_samples(path)
