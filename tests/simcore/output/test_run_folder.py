"""A run folder is written whole or not at all, and never in place of anything but a run."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml

from simcore.build.simulation import Simulation
from simcore.core.errors import FileError
from simcore.core.outputs import PAGE_MARK
from simcore.output.run_folder import RUN_FILES, check_destination, write_run_folder

PAGE = f"<!DOCTYPE html>\n<html><head>{PAGE_MARK}</head>é</html>"
OLD_TIMELINE = '{"displayTimeUnit":"ms","otherData":{}}'
FIXED = {"name": "fixed", "tokens": 40}
DOCUMENT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "max_context_tokens": 100,
    "workload": {
        "requests": 30,
        "arrivals": {"name": "poisson", "rate_per_s": 20},
        "prompt_tokens": {"name": "uniform", "low": 20, "high": 90},
        "output_tokens": FIXED,
    },
}


@pytest.fixture(scope="module")
def result():
    return Simulation.prepare(DOCUMENT, Path()).run()


@pytest.fixture
def run(tmp_path, result):
    folder = tmp_path / "run"
    write_run_folder(result, folder, PAGE)
    return folder


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_all_files_and_no_others(run):
    assert names(run) == set(RUN_FILES)
    assert names(run.parent) == {"run"}
    assert (run / "report.html").read_text(encoding="utf-8") == PAGE


def test_without_a_report(tmp_path, result):
    write_run_folder(result, tmp_path / "run")
    assert names(tmp_path / "run") == set(RUN_FILES) - {"report.html"}


def test_summary_and_scenario_read_back(run, result):
    assert json.loads((run / "summary.json").read_text()) == result.summary
    assert yaml.safe_load((run / "scenario.yaml").read_text()) == result.scenario
    assert (run / "scenario.yaml").read_text().startswith("# servetwin ")


@pytest.mark.parametrize("table", ["requests", "steps"])
def test_tables_keep_every_value_and_null_stands_for_what_never_came(run, result, table):
    read, columns = parquet.read_table(run / f"{table}.parquet"), getattr(result, table)
    assert read.schema.metadata[b"schema_version"] == b"2"
    assert read.column_names == list(columns)
    for name, values in columns.items():
        kind = read.schema.field(name).type
        if values.dtype.kind == "U":
            assert pa.types.is_dictionary(kind)
            assert read[name].to_pylist() == values.tolist()
        else:
            assert kind == pa.from_numpy_dtype(values.dtype)
            missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
            assert read[name].is_null().to_pylist() == missing.tolist()
            assert read[name].drop_null().to_pylist() == values[~missing].tolist()


def test_some_values_are_null(run):
    rejected = parquet.read_table(run / "requests.parquet").filter(pa.compute.field("state") == "rejected")
    assert len(rejected) > 0
    assert rejected["ttft_s"].null_count == len(rejected)
    assert "context limit" in rejected["reason"][0].as_py()


def test_an_earlier_run_is_replaced(run, result):
    (run / "timeline.json").write_text(OLD_TIMELINE)
    write_run_folder(result, run)
    assert names(run) == set(RUN_FILES) - {"report.html"}
    assert (run / "timeline.json").read_text() != OLD_TIMELINE
    assert names(run.parent) == {"run"}


def test_parents_are_made_and_an_empty_folder_is_taken(tmp_path, result):
    write_run_folder(result, tmp_path / "a" / "b" / "run")
    (tmp_path / "empty").mkdir()
    write_run_folder(result, tmp_path / "empty")
    assert "summary.json" in names(tmp_path / "a" / "b" / "run") & names(tmp_path / "empty")


def test_a_link_is_followed(tmp_path, run, result):
    (tmp_path / "link").symlink_to(run)
    (run / "timeline.json").write_text(OLD_TIMELINE)
    write_run_folder(result, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (run / "timeline.json").read_text() != OLD_TIMELINE


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda out: out.write_text("mine"), "is no folder, so a run cannot be written there"),
        (lambda out: (out.mkdir(), (out / "notes.md").touch()), "holds 'notes.md', which is no part of a run"),
        (lambda out: (out.mkdir(), (out / "summary.json").touch()), "holds 'summary.json' but no whole run"),
    ],
)
def test_what_is_no_run_stays_as_it_is(tmp_path, result, make, said):
    out = tmp_path / "out"
    make(out)
    before = sorted(tmp_path.rglob("*"))
    for attempt in (lambda: check_destination(out), lambda: write_run_folder(result, out)):
        with pytest.raises(FileError) as caught:
            attempt()
        assert str(caught.value).startswith(f"{out}: ")
        assert said in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_notes_beside_a_run_are_not_deleted(run, result):
    (run / "notes.md").write_text("mine")
    with pytest.raises(FileError, match=r"holds 'notes.md'"):
        write_run_folder(result, run)
    assert (run / "notes.md").read_text() == "mine"


def test_a_file_among_the_parents(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="is no folder"):
        check_destination(tmp_path / "file" / "a" / "run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_parent_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="allows no new entries"):
        check_destination(tmp_path / "run")


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(FileError, match="File name too long"):
        check_destination(tmp_path / ("x" * 300))


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("when", ["simcore.output.run_folder.write_timeline", "simcore.core.outputs.move_into_place"])
def test_a_failure_leaves_the_earlier_run(run, result, monkeypatch, failure, when):
    before = {path.name: path.read_bytes() for path in run.iterdir()}

    def fail(*arguments):
        raise failure

    monkeypatch.setattr(when, fail)
    with pytest.raises(FileError if isinstance(failure, OSError) else type(failure)):
        write_run_folder(result, run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert names(run.parent) == {"run"}


@pytest.mark.parametrize("name", sorted(RUN_FILES))
def test_a_file_that_only_bears_the_name_of_one_is_kept(run, result, name):
    (run / name).write_text("mine")
    with pytest.raises(FileError, match=f"holds '{name}', which servetwin did not write"):
        write_run_folder(result, run)
    assert (run / name).read_text() == "mine"
    assert names(run) == set(RUN_FILES)


def test_a_folder_that_only_bears_the_name_of_a_file_is_kept(run, result):
    (run / "summary.json").unlink()
    (run / "summary.json").mkdir()
    (run / "summary.json" / "precious").write_text("mine")
    with pytest.raises(FileError, match=r"holds 'summary.json', which servetwin did not write"):
        write_run_folder(result, run)
    assert (run / "summary.json" / "precious").read_text() == "mine"
