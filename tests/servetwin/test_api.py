"""The Python API, and that a saved run can be run again from anywhere with the same outcome."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import servetwin
from simcore.models import load_preset

REPOSITORY = Path(__file__).resolve().parents[2]
TRACE = "arrival_s,prompt_tokens,output_tokens\n0,10,20\n0.1,30,40\n0.05,50,6\n0.3,500,60\n"


def without_run(summary):
    return {key: value for key, value in summary.items() if key != "run"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A scenario that names a trace, a model and an accelerator of its own, all by relative paths."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "trace.csv").write_text(TRACE)
    (folder / "my-model").mkdir()
    (folder / "my-model" / "config.json").write_text(json.dumps(load_preset("smollm2-135m").config))
    shutil.copy(Path(servetwin.__file__).parent.parent / "hardware_profiles" / "l4.yaml", folder / "my-gpu.yaml")
    document = {
        "model": "my-model",
        "cluster": {"accelerator": "my-gpu.yaml"},
        "max_context_tokens": 200,
        "workload": {"trace": "trace.csv", "sort": True},
        "slo": {"ttft_s": {"p99": 1}},
    }
    (folder / "scenario.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_path_and_a_mapping_mean_the_same(project):
    from_path = servetwin.simulate("project/scenario.yaml")
    document = yaml.safe_load((project / "scenario.yaml").read_text())
    from_mapping = servetwin.simulate(document, base_dir="project")
    assert without_run(from_path.summary) == without_run(from_mapping.summary)
    assert from_path.scenario == from_mapping.scenario
    assert from_path.summary["counts"]["rejected"] == 1


@pytest.mark.parametrize("overrides", [(), ("seed=3", "cluster.replicas=2", "precision.kv_cache=fp8")])
def test_a_saved_scenario_runs_again_from_anywhere(project, tmp_path, monkeypatch, overrides):
    first = servetwin.simulate("project/scenario.yaml", overrides=overrides)
    folder = servetwin.save(first, tmp_path / "runs" / "first")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place, scenario in ((folder, "scenario.yaml"), (elsewhere, folder / "scenario.yaml")):
        monkeypatch.chdir(place)
        again = servetwin.simulate(scenario)
        assert without_run(again.summary) == without_run(first.summary)
        assert again.scenario == first.scenario
        assert again.summary["run"]["seed"] == first.summary["run"]["seed"]
        for name, values in first.requests.items():
            assert values.tobytes() == again.requests[name].tobytes()


def test_the_document_is_not_changed(project):
    document = yaml.safe_load((project / "scenario.yaml").read_text())
    before = json.dumps(document)
    servetwin.simulate(document, overrides=["seed=4"], base_dir=project)
    assert json.dumps(document) == before


def test_progress_is_told(project):
    told: list[int] = []
    synthetic = "workload={requests: 5000, arrivals: {name: constant, rate_per_s: 500}, "
    lengths = "prompt_tokens: {name: fixed, tokens: 5}, output_tokens: {name: fixed, tokens: 1}}"
    servetwin.simulate("project/scenario.yaml", overrides=[synthetic + lengths], progress=told.append)
    assert told == [1024, 2048, 3072, 4096]


def test_columns_are_ready_for_a_data_frame(project):
    result = servetwin.simulate("project/scenario.yaml")
    for table in (result.requests, result.steps):
        assert len({len(column) for column in table.values()}) == 1
        assert all(column.ndim == 1 for column in table.values())
    assert "3 of 4 requests finished" in str(result)


def test_errors_have_one_base():
    with pytest.raises(servetwin.ServetwinError, match="no such file"):
        servetwin.simulate("nowhere.yaml")


def test_save_titles_the_report(project, tmp_path):
    result = servetwin.simulate("project/scenario.yaml")
    assert "<title>A title" in (servetwin.save(result, tmp_path / "one", "A title") / "report.html").read_text()
    assert "two" in (servetwin.save(result, str(tmp_path / "two")) / "report.html").read_text()[:2000]


def test_the_package_itself_imports_nothing_heavy():
    code = "import sys, servetwin; assert not {'numpy', 'simcore', 'typer'} & set(sys.modules); print(dir(servetwin))"
    process = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert set(servetwin.__all__) <= set(ast.literal_eval(process.stdout))
    assert servetwin.simulate.__module__ == "servetwin.api"
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        servetwin.simulat  # noqa: B018
