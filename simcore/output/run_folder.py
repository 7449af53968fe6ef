"""The run folder: everything about one run, written whole or not at all.

| file | content |
|---|---|
| scenario.yaml | the scenario in full, ready to be run again; versions in its head |
| summary.json | counts, metrics, throughput and the rest, as ``simcore.metrics.summary`` makes them |
| requests.parquet, steps.parquet | the two tables of ``simcore.result.Result``; undefined values are null |
| timeline.json | the run as a timeline for ui.perfetto.dev |

Both tables and the summary carry ``schema_version``.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import yaml

from simcore.errors import FileError
from simcore.output.timeline import write_timeline
from simcore.result import Columns, Result

SUMMARY = "summary.json"
SCENARIO = "scenario.yaml"
_TEXT_COLUMNS = ("state", "reason")


def check_destination(folder: Path) -> None:
    """Raise ``FileError`` unless ``folder`` is free to be written: missing, empty, or a run folder to be replaced."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileError(folder, "is no folder, so no run can be written there")
    if any(folder.iterdir()) and not ((folder / SUMMARY).is_file() and (folder / SCENARIO).is_file()):
        raise FileError(folder, "holds something other than a run, which writing there would replace")


def write_run_folder(result: Result, folder: Path, more_files: Mapping[str, str] | None = None) -> None:
    """Write a result to ``folder``, with further text files by name; an earlier run there is replaced.

    Everything is written beside it first and then moved into place. Raises ``FileError`` if that cannot be done.
    """
    check_destination(folder)
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise FileError(folder, f"cannot be written ({error.strerror})") from error
    try:
        partial.chmod(0o755)
        _write_files(result, partial, more_files or {})
        _move_into_place(partial, folder)
    except OSError as error:
        raise FileError(folder, f"cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_files(result: Result, folder: Path, more_files: Mapping[str, str]) -> None:
    (folder / SCENARIO).write_text(_scenario_text(result), encoding="utf-8")
    (folder / SUMMARY).write_text(summary_text(result.summary), encoding="utf-8")
    _write_table(result.requests, folder / "requests.parquet", result.summary)
    _write_table(result.steps, folder / "steps.parquet", result.summary)
    write_timeline(result, folder / "timeline.json")
    for name, text in more_files.items():
        (folder / name).write_text(text, encoding="utf-8")


def summary_text(summary: Mapping[str, Any]) -> str:
    """The summary as JSON; what is undefined is null, never NaN."""
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"


def _scenario_text(result: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.summary["run"]["versions"].items())
    return f"# {versions}\n{yaml.safe_dump(result.scenario, sort_keys=False, allow_unicode=True)}"


def _write_table(columns: Columns, path: Path, summary: Mapping[str, Any]) -> None:
    arrays = {
        name: pa.array(values).dictionary_encode() if name in _TEXT_COLUMNS else pa.array(values, from_pandas=True)
        for name, values in columns.items()
    }
    table = pa.table(arrays).replace_schema_metadata({"schema_version": str(summary["schema_version"])})
    parquet.write_table(table, path, compression="zstd")


def _move_into_place(partial: Path, folder: Path) -> None:
    if not folder.exists():
        partial.rename(folder)
        return
    replaced = Path(mkdtemp(prefix=f".{folder.name}-replaced-", dir=folder.parent))
    folder.rename(replaced / folder.name)
    try:
        partial.rename(folder)
    except OSError:
        (replaced / folder.name).rename(folder)
        raise
    finally:
        shutil.rmtree(replaced, ignore_errors=True)
