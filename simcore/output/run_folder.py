"""The run folder: everything about one run, written whole or not at all.

| file | content |
|---|---|
| scenario.yaml | the scenario in full, ready to be run again; versions in its head |
| summary.json | counts, metrics, throughput and the rest, as ``simcore.metrics.summary`` makes them |
| requests.parquet, steps.parquet | the two tables of ``simcore.core.result.Result``; undefined values are null |
| timeline.json | the run as a timeline for ui.perfetto.dev |
| report.html | figures and tables to look at, made elsewhere and handed in |

Both tables and the summary carry ``schema_version``.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from simcore.core.errors import FileError
from simcore.core.files import writing
from simcore.core.result import Columns, Result
from simcore.output.timeline import write_timeline

SUMMARY = "summary.json"
SCENARIO = "scenario.yaml"
RUN_FILES = (SCENARIO, SUMMARY, "requests.parquet", "steps.parquet", "timeline.json", "report.html")
_TEXT_COLUMNS = ("state", "reason", "tenant")


def check_destination(folder: Path) -> None:
    """Raise ``FileError`` unless a run can be written to ``folder``.

    It must be missing (and its nearest parent writable), empty, or hold a run and nothing else, which is then replaced.
    """
    with writing(folder):
        _check_place(_place(folder), folder)


def _place(folder: Path) -> Path:
    """Where links lead, so that the run they point to is replaced and not the link."""
    return Path(os.path.realpath(folder))


def _check_place(place: Path, shown: Path) -> None:
    parent = place.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise FileError(shown, f"cannot be written, since {parent} is no folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise FileError(shown, f"cannot be written, since {parent} allows no new entries")
    if not place.exists():
        return
    if not place.is_dir():
        raise FileError(shown, "is no folder, so no run can be written there")
    found = sorted(entry.name for entry in place.iterdir())
    others = [name for name in found if name not in RUN_FILES]
    if others:
        raise FileError(shown, f"holds {others[0]!r}, which is no part of a run and which writing there would delete")
    if found and not {SUMMARY, SCENARIO} <= set(found):
        raise FileError(shown, f"holds {found[0]!r} but no whole run, and writing there would delete it")


def write_run_folder(result: Result, folder: Path, report: str | None = None) -> None:
    """Write a result to ``folder``, with its report as HTML if there is one; an earlier run there is replaced.

    Everything is written beside it first and then moved into place, so a run is there whole or not at all. Raises
    ``FileError`` if that cannot be done.
    """
    check_destination(folder)
    place = _place(folder)
    with writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".servetwin-", dir=place.parent) as beside:
            new = Path(beside) / "new"
            new.mkdir()
            _write_files(result, new, report)
            move_into_place(new, place, Path(beside) / "old")


def move_into_place(new: Path, place: Path, old: Path) -> None:
    """Let the folder ``new`` be ``place``; what was there goes to ``old``, or stays if that fails."""
    try:
        if place.exists():
            place.rename(old)
        new.rename(place)
    finally:
        # Whatever came in between, Ctrl-C included: the earlier run is not lost.
        if old.exists() and not place.exists():
            old.rename(place)


def _write_files(result: Result, folder: Path, report: str | None) -> None:
    (folder / SCENARIO).write_text(_scenario_text(result), encoding="utf-8")
    (folder / SUMMARY).write_text(summary_text(result.summary), encoding="utf-8")
    _write_table(result.requests, folder / "requests.parquet", result.summary)
    _write_table(result.steps, folder / "steps.parquet", result.summary)
    write_timeline(result, folder / "timeline.json")
    if report is not None:
        (folder / "report.html").write_text(report, encoding="utf-8")


def summary_text(summary: Mapping[str, Any]) -> str:
    """The summary as JSON; what is undefined is null, never NaN."""
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"


def _scenario_text(result: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.summary["run"]["versions"].items())
    return f"# {versions}\n{yaml.safe_dump(result.scenario, sort_keys=False, allow_unicode=True)}"


def _write_table(columns: Columns, path: Path, summary: Mapping[str, Any]) -> None:
    import pyarrow as pa  # slow to import, and a run of which only the summary is printed does not need it
    import pyarrow.parquet as parquet

    arrays = {
        name: pa.DictionaryArray.from_arrays(*_numbered(values))
        if name in _TEXT_COLUMNS
        else pa.array(values, from_pandas=True)
        for name, values in columns.items()
    }
    table = pa.table(arrays).replace_schema_metadata({"schema_version": str(summary["schema_version"])})
    with path.open("wb") as file:  # Arrow takes no path that is not UTF-8
        parquet.write_table(table, file, compression="zstd")


def _numbered(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of each text, and the different texts in order of appearance."""
    different, first, numbers = np.unique(texts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[numbers].astype(np.int32), different[order]
