import json

import pytest
from typer.testing import CliRunner

import servetwin.trace_commands as commands
from servetwin.app import trace_app
from simcore.core.errors import FileError, UnknownNameError
from simcore.workload.fetch import KnownTrace

TRACE = "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1,30,40\n9,50,60\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def run(*arguments):
    return CliRunner().invoke(trace_app, [str(argument) for argument in arguments])


def test_describe_prints_tables(trace):
    result = run("describe", trace)
    assert result.exit_code == 0
    for words in ("0.2222 requests/s", "prompt tokens", "P99", "index of dispersion"):
        assert words in result.output


def test_describe_json_is_json_alone(trace):
    described = json.loads(run("describe", trace, "--json").output)
    assert (described["requests"], described["prompt_tokens"]["mean"]) == (3, 30.0)


def test_describe_with_named_columns(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("when,p,o\n0,1,2\n500,1,2\n")
    names = ("--arrival", "when", "--arrival-unit", "ms", "--prompt-tokens", "p", "--output-tokens", "o")
    assert json.loads(run("describe", path, "--json", *names).output)["duration_s"] == 0.5


def test_describe_writes_a_plot(trace, tmp_path):
    result = run("describe", trace, "--plot", tmp_path / "out.html")
    assert "Figures: " in result.output
    assert "Plotly" in (tmp_path / "out.html").read_text()


def test_errors_reach_the_caller(tmp_path):
    assert isinstance(run("describe", tmp_path / "no.csv").exception, FileError)
    assert isinstance(run("fetch", "azure-conv").exception, UnknownNameError)


def test_list_names_what_can_be_fetched():
    assert "azure-conv-2023" in run("list").output


def test_fetch_shows_licence_and_citation(trace, tmp_path, monkeypatch):
    known = KnownTrace("tiny", "Tiny", "http://127.0.0.1/", "tiny.csv", "csv", "00", 53, "CC-BY-4.0", "Nobody, 2024")
    monkeypatch.setattr(commands, "known_trace", lambda name: known)
    monkeypatch.setattr(commands, "fetch", lambda trace, folder: folder / trace.file)
    output = run("fetch", "tiny", "--out", tmp_path).output
    assert "tiny.csv" in output
    assert "Licence: CC-BY-4.0" in output
    assert "Nobody, 2024" in output
