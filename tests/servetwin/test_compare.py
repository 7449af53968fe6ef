"""``servetwin compare`` and ``servetwin.compare``: what they print, write, refuse, and keep after Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import servetwin

REPOSITORY = Path(__file__).resolve().parents[2]
LIMIT = "scheduler.batching.max_running_requests"
FORESEEN = (
    "Warning: Few seeds: with 2 no p-value can fall below 0.5; to be below 0.05 takes at least 6 seeds. Verdicts go by "
    "the intervals, which with so few seeds are wide and lean on differences being about normal.\n"
)
VARY = ("--vary", f"{LIMIT}=8,2")


@pytest.fixture
def compare(command, scenario_file):
    """Runs ``servetwin compare`` on the small scenario, in this process."""
    return lambda *arguments: command("compare", scenario_file, "--jobs", "1", *arguments)


def test_it_prints_a_table_its_method_and_where_the_report_is(compare, tmp_path):
    ended = compare(*VARY, "--seeds", "2", "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, FORESEEN)
    head = f"{LIMIT}: 2 variants against max_running_requests=8, 2 seeds (0 to 1)"
    for words in (head, "TTFT mean (ms)", "95% interval", "p (Holm)", "baseline", "Method: Every variant", "Notice: "):
        assert words in ended.out
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in ended.out
    assert "The same for all: " in ended.out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"comparison.json", "report.html", "runs"}
    assert len(list((tmp_path / "out" / "runs").glob("*/run.json"))) == 4


def test_the_folder_is_named_after_the_scenario_unless_stated(compare, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Folder: runs/small-compare" in compare(*VARY, "--seeds", "1").out


def test_json_is_the_comparison_alone_and_the_same_as_in_the_folder(compare, scenario_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = compare(*VARY, "--seeds", "2", "--json", "--metrics", "ttft_s.mean,requests_per_s")
    assert (ended.code, ended.err) == (0, "")
    assert list(tmp_path.iterdir()) == [scenario_file]
    found = json.loads(ended.out)
    assert [(row["metric"], row["variant"]) for row in found["rows"]] == [
        (metric, f"max_running_requests={limit}") for metric in ("ttft_s.mean", "requests_per_s") for limit in (8, 2)
    ]
    assert found["complete"] is True
    again = compare(*VARY, "--seeds", "2", "--json", "--metrics", "ttft_s.mean,requests_per_s", "--out", "out")
    assert again.out == ended.out == (tmp_path / "out" / "comparison.json").read_text()


def test_a_second_time_finished_runs_are_found_again_and_that_is_said(compare, tmp_path):
    first = compare(*VARY, "--seeds", "2", "--out", tmp_path / "out")
    second = compare(*VARY, "--seeds", "2", "--out", tmp_path / "out")
    assert second.err == FORESEEN + "4 of 4 runs were there already, of the same scenario, files and code.\n"
    assert second.out == first.out
    third = compare(*VARY, "--seeds", "2", "--out", tmp_path / "out", "--set", "workload.requests=21", "--quiet")
    assert (third.out, third.err) == ("", "")


def test_long_labels_become_letters_with_a_key(compare, tmp_path):
    batching = "{name: chunked-prefill, max_batched_tokens: 64},{name: chunked-prefill, max_batched_tokens: 32}"
    ended = compare("--vary", f"scheduler.batching={batching}", "--seeds", "2", "--out", tmp_path / "out")
    assert "  variant B chunked-prefill(max_batched_tokens=32)\n" in ended.out
    assert "2 variants against variant A" in ended.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--vary", "scheduler.ordering.name=fcfs,fcfz"), "scheduler.ordering.name is 'fcfz', expected one of"),
        (("--vary", f"{LIMIT}=8,0"), f"{LIMIT} is 0, expected a whole number from 1 to 2147483647."),
        ((), "--vary is missing, expected at least two variants, such as KEY=VALUE,VALUE."),
        (
            ("--vary", LIMIT),
            f"--vary is '{LIMIT}', expected KEY=VALUE,VALUE, such as scheduler.ordering.name=",
        ),
        (("--vary", f"{LIMIT}=8,[2"), f"--vary {LIMIT} is '8,[2', expected values in YAML ("),
        ((*VARY, "--vary", f"{LIMIT}=4,3"), f"expected all values of {LIMIT} in one --vary."),
        ((*VARY, "--set", f"{LIMIT}=3"), f"--set is '{LIMIT}=3', expected a key that --vary does not give values to"),
        ((*VARY, "--seeds", "0"), "--seeds is 0, expected a whole number of at least 1."),
        ((*VARY, "--jobs", "0"), "--jobs is 0, expected a whole number of at least 1."),
        ((*VARY, "--baseline", "max_running_requests=3"), "--baseline is 'max_running_requests=3', expected one of"),
        ((*VARY, "--metrics", "ttft"), "--metrics is 'ttft', expected one of busy_share, e2e_s.mean,"),
        ((*VARY, "--set", "cluster.replica=2"), "cluster.replica is an unknown field"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(compare, scenario_file, tmp_path, arguments, said):
    ended = compare(*arguments, "--out", tmp_path / "new" / "out")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("servetwin: ")
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [scenario_file]


def test_a_folder_that_holds_anything_else_is_left_alone(compare, scenario_file, tmp_path):
    ended = compare(*VARY, "--out", tmp_path)
    refusal = f"servetwin: {tmp_path}: holds 'small.yaml', which is no part of a comparison.\n"
    assert (ended.code, ended.err) == (2, refusal)


def test_from_python(scenario_file, tmp_path):
    seen = []
    comparison = servetwin.compare(
        scenario_file,
        {LIMIT: [8, 2]},
        seeds=2,
        out=tmp_path / "out",
        jobs=1,
        progress=lambda run: seen.append(run.seed),
    )
    assert seen == [0, 0, 1, 1]
    assert str(comparison).endswith("against max_running_requests=8, 2 seeds, 0 runs missing")
    assert (tmp_path / "out" / "report.html").is_file()
    table = comparison.table
    assert list(table["variant"][:2]) == list(comparison.variants)
    assert table["value"].dtype == float
    elsewhere = servetwin.compare(scenario_file, {LIMIT: [8, 2]}, seeds=2, jobs=1)
    assert elsewhere.rows == comparison.rows


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_finished_runs_and_says_what_is_missing(scenario_file, tmp_path, jobs):
    # The first variants take an instant, the last one for ever.
    out = tmp_path / "out"
    vary = ("--vary", "workload.requests=20,30,900000000", "--seeds", "1", "--jobs", str(jobs), "--out", str(out))
    code = "import sys; from servetwin.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "compare", scenario_file, *vary],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    given_up = time.monotonic() + 30
    while len(list(out.glob("runs/*/run.json"))) < 2 and time.monotonic() < given_up:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    printed, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Warning: Interrupted: 1 of 3 runs are missing (requests=900000000 seed 0)." in printed
    found = json.loads((out / "comparison.json").read_text())
    assert found["missing"] == [{"variant": "requests=900000000", "seed": 0}]
    assert {row["verdict"] for row in found["rows"]} == {"baseline", "untested"}
    assert (out / "report.html").is_file()
    # The same folder serves the next command, which finds the two again.
    fewer = servetwin.compare(scenario_file, {"workload.requests": [20, 30]}, seeds=1, jobs=1, out=out)
    assert fewer.missing == ()


def test_an_interrupt_before_anything_is_finished_leaves_nothing(scenario_file, tmp_path):
    code = "import sys; from servetwin.cli import main; print('up', flush=True); sys.exit(main())"
    vary = ("--vary", "workload.requests=800000000,900000000", "--seeds", "1", "--json")
    process = subprocess.Popen(
        [sys.executable, "-c", code, "compare", scenario_file, *vary],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(1.2)
    process.send_signal(signal.SIGINT)
    printed, err = process.communicate(timeout=20)
    assert (process.returncode, printed, "Traceback" in err) == (130, "", False)
    assert list(tmp_path.iterdir()) == [scenario_file]
