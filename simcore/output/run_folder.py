"""The run folder: everything about one run, written whole or not at all.

| file | content |
|---|---|
| scenario.yaml | the scenario in full, ready to be run again; versions in its head |
| summary.json | counts, metrics, throughput and the rest, as ``simcore.metrics.summary`` makes them |
| requests.parquet, steps.parquet | the two tables of ``simcore.core.result.Result``; undefined values are null |
| fleet.parquet, service.parquet | the phases of replicas, and the service over time |
| timeline.json | the run as a timeline for ui.perfetto.dev |
| report.html | figures and tables to look at, made elsewhere and handed in |

Both tables and the summary carry ``schema_version``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from simcore.core.errors import FileError
from simcore.core.files import opening, read_json
from simcore.core.outputs import FolderKind, begins_with, check_folder, is_page, replace_folder
from simcore.core.result import Columns, Result
from simcore.core.yaml_text import read_yaml
from simcore.metrics.summary import SCHEMA_VERSION
from simcore.output.timeline import write_timeline

SUMMARY = "summary.json"
SCENARIO = "scenario.yaml"


def _is_table(path: Path) -> bool:
    import pyarrow.parquet as parquet

    with path.open("rb") as file:
        metadata: dict[bytes, bytes] = parquet.read_schema(file).metadata or {}
    return b"schema_version" in metadata


_REPORT = "report.html"
RUN_FOLDER = FolderKind(
    "a run",
    (SCENARIO, SUMMARY),
    {
        SCENARIO: begins_with(b"# servetwin "),
        SUMMARY: begins_with(b'{\n  "schema_version": '),
        "requests.parquet": _is_table,
        "steps.parquet": _is_table,
        "fleet.parquet": _is_table,
        "service.parquet": _is_table,
        "timeline.json": begins_with(b'{"displayTimeUnit":"ms","otherData":'),
        _REPORT: is_page,
    },
)
RUN_FILES = tuple(RUN_FOLDER.recognise)


def check_destination(folder: Path) -> None:
    """Raise ``FileError`` unless a run can be written to ``folder``.

    It must be missing (and its nearest parent writable), empty, or hold a run and nothing else, which is then replaced.
    """
    check_folder(folder, RUN_FOLDER)


def write_run_folder(result: Result, folder: Path, report: str | None = None) -> None:
    """Write a result to ``folder``, with its report as HTML if there is one; an earlier run there is replaced.

    A run is there whole or not at all. Raises ``FileError`` if that cannot be done.
    """
    replace_folder(folder, RUN_FOLDER, lambda new: _write_files(result, new, report))


def _write_files(result: Result, folder: Path, report: str | None) -> None:
    (folder / SCENARIO).write_text(_scenario_text(result), encoding="utf-8")
    (folder / SUMMARY).write_text(summary_text(result.summary), encoding="utf-8")
    write_table(result.requests, folder / "requests.parquet", result.summary)
    write_table(result.steps, folder / "steps.parquet", result.summary)
    write_table(result.fleet, folder / "fleet.parquet", result.summary)
    write_table(result.service, folder / "service.parquet", result.summary)
    write_timeline(result, folder / "timeline.json")
    if report is not None:
        (folder / _REPORT).write_text(report, encoding="utf-8")


def read_run_folder(folder: Path) -> Result:
    """The result that a run folder holds, all but its gaps between tokens and its transfers, which it does not.

    Raises ``FileError`` for a folder that holds no run, or one that cannot be read.
    """
    scenario, summary = read_yaml(folder / SCENARIO), read_json(folder / SUMMARY)
    if not (isinstance(scenario, dict) and isinstance(summary, dict) and "metrics" in summary):
        raise FileError(folder, "holds no run of servetwin's")
    version = summary.get("schema_version")
    if version != SCHEMA_VERSION:
        raise FileError(folder, f"holds a run of schema {version}, expected {SCHEMA_VERSION}; run it again")
    requests, steps = (_read_table(folder / name) for name in ("requests.parquet", "steps.parquet"))
    later = (folder / "fleet.parquet", folder / "service.parquet")  # runs of earlier versions have neither
    fleet, service = (_read_table(path) if path.exists() else {} for path in later)
    gaps = {"value_s": np.empty(0), "share": np.empty(0)}
    return Result(scenario, summary, requests, steps, gaps, fleet=fleet, service=service)


def _read_table(path: Path) -> Columns:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with opening(path, "table"), path.open("rb") as file:
            table = parquet.read_table(file)
        return {name: _column(table[name]) for name in table.column_names}
    except (ValueError, pa.ArrowException) as error:
        raise FileError(path, "holds no table of a run") from error


def _column(column: Any) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    values: np.ndarray = column.to_numpy()
    return values


def summary_text(summary: Mapping[str, Any]) -> str:
    """The summary as JSON; what is undefined is null, never NaN."""
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"


def _scenario_text(result: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.summary["run"]["versions"].items())
    return f"# {versions}\n{yaml.safe_dump(result.scenario, sort_keys=False, allow_unicode=True)}"


def write_table(columns: Columns, path: Path, summary: Mapping[str, Any]) -> None:
    """Write columns as Parquet; what is undefined is null. Raises ``OSError``."""
    import pyarrow as pa  # slow to import, and a run of which only the summary is printed does not need it
    import pyarrow.parquet as parquet

    arrays = {
        name: _texts(values) if values.dtype.kind == "U" else _numbers(values) for name, values in columns.items()
    }
    table = pa.table(arrays).replace_schema_metadata({"schema_version": str(summary["schema_version"])})
    with path.open("wb") as file:  # Arrow takes no path that is not UTF-8
        parquet.write_table(table, file, compression="zstd")


# Not by ``pyarrow.array``, which imports pandas wherever that is installed.
def _numbers(values: np.ndarray) -> Any:
    """Numbers for Arrow; NaN is null."""
    import pyarrow as pa

    present = None
    if values.dtype.kind == "f" and np.isnan(values).any():
        present = pa.py_buffer(np.packbits(~np.isnan(values), bitorder="little"))
    buffers = [present, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _texts(texts: np.ndarray) -> Any:
    """The number of each text for Arrow, and the different texts in order of appearance."""
    import pyarrow as pa

    different, first, numbers = np.unique(texts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    encoded = [text.encode() for text in different[order].tolist()]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    known = pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
    return pa.DictionaryArray.from_arrays(_numbers(place[numbers].astype(np.int32)), known)
