"""The command line: what it prints and where, exit codes, and what it leaves behind."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import requires, version
from pathlib import Path

import pytest

from dashboard.digits import figure
from simcore.output.run_folder import RUN_FILES

REPOSITORY = Path(__file__).resolve().parents[2]


def test_run_prints_the_headline_and_says_where_the_report_is(command, scenario_file, tmp_path):
    ended = command("run", scenario_file, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    for words in ("20 requests: 20 finished, 0 rejected", "TTFT (s)", "P99.9", "throughput:", "KV cache:", "Warning:"):
        assert words in ended.out
    assert f"Report:     {tmp_path / 'out' / 'report.html'}" in ended.out
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(RUN_FILES)


def test_the_folder_is_named_after_the_scenario_unless_stated(command, scenario_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Run folder: runs/small" in command("run", "small.yaml").out
    assert (tmp_path / "runs" / "small" / "summary.json").is_file()


def test_json_is_the_summary_alone(command, scenario_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = command("run", scenario_file, "--json")
    assert (ended.code, ended.err) == (0, "")
    summary = json.loads(ended.out)
    assert set(summary["counts"]) >= {"arrived", "finished", "rejected", "unfinished"}
    for metric in ("ttft_s", "tpot_s", "itl_s", "e2e_s", "queue_s"):
        assert set(summary["metrics"][metric]) >= {"mean", "p50", "p90", "p95", "p99", "p999", "ci"}
    rates = {"requests_per_s", "output_tokens_per_s", "total_tokens_per_s", "goodput_requests_per_s"}
    assert set(summary["throughput"]) >= rates
    assert set(summary) >= {"kv", "preemptions", "utilisation"}
    assert set(summary["run"]) >= {"wall_s", "simulated_s", "requests_per_wall_s", "seed", "versions"}
    assert list(tmp_path.iterdir()) == [scenario_file]


def test_bands_stand_in_table_summary_and_report(command, scenario_file, tmp_path):
    ended = command("run", scenario_file, "--bands", 9, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    assert "80% band" in ended.out
    low, high = json.loads((tmp_path / "out" / "summary.json").read_text())["metrics"]["ttft_s"]["band"]["p50"]
    assert f"{figure(low)} to {figure(high)}" in ended.out
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<small>band " in report
    assert "80 % uncertainty bands of 9 replays" in report
    refused = command("run", scenario_file, "--bands", 3, "--out", tmp_path / "other")
    assert (refused.code, refused.out) == (2, "")
    assert "--bands is 3, expected 0 for no bands, or 9 to 10000 replays." in refused.err
    assert not (tmp_path / "other").exists()


def test_json_with_a_folder_writes_what_it_prints(command, scenario_file, tmp_path):
    printed = command("run", scenario_file, "--json", "--out", tmp_path / "out").out
    assert (tmp_path / "out" / "summary.json").read_text() == printed


def test_quiet_prints_nothing(command, scenario_file, tmp_path):
    ended = command("run", scenario_file, "--quiet", "--out", tmp_path / "out")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (tmp_path / "out" / "summary.json").is_file()


def test_set_overrides_and_is_repeatable(command, scenario_file):
    changes = ("--set", "workload.requests=1e1", "--set", "seed=7", "--set", "slo.ttft_s.p99=2")
    summary = json.loads(command("run", scenario_file, "--json", *changes).out)
    assert (summary["counts"]["arrived"], summary["run"]["seed"]) == (10, 7)
    assert summary["slo"]["ttft_s.p99"]["met"] is True


def test_strict_refuses_before_the_run_what_is_not_calibrated(command, scenario_file, tmp_path):
    ended = command("run", scenario_file, "--strict", "--out", tmp_path / "out", "--set", "pricing.profile=roofline")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("servetwin: 100% of simulated time would be priced outside calibrated ranges")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("model", "code"), [("llama-3.1-8b", 0), ("deepseek-v2-lite", 2)])
def test_strict_refuses_a_run_of_which_much_was_priced_outside(command, scenario_file, tmp_path, model, code):
    """Experts of that size were measured for no model."""
    out = tmp_path / "out"
    changes = ("--set", f"model={model}", "--set", "cluster.accelerator=h200-sxm", "--set", "pricing.profile=auto")
    ended = command("run", scenario_file, "--strict", "--out", out, *changes)
    assert (ended.code, out.exists()) == (code, code == 0)
    assert ("which --strict refuses: at most 30% may be" in ended.err) == (code == 2)


def test_a_longer_request_is_rejected_with_its_reason(command, scenario_file):
    ended = command("run", scenario_file, "--json", "--set", "max_context_tokens=60")
    counts = json.loads(ended.out)["counts"]
    assert ended.code == 0
    assert 0 < counts["rejected"] < counts["arrived"]
    assert counts["rejected_by_reason"] == {"prompt and output exceed the context limit": counts["rejected"]}


@pytest.mark.parametrize(("end_s", "cut"), [(None, False), (0.2, True), (1000.0, False)])
def test_a_run_that_was_cut_off_does_not_claim_its_drain(command, scenario_file, tmp_path, end_s, cut):
    changes = () if end_s is None else ("--set", f"measurement.end_s={end_s}")
    ended = command("run", scenario_file, "--json", "--out", tmp_path / "out", *changes)
    window = json.loads(ended.out)["window"]
    assert window["drain_excluded"] is cut
    assert ("drain included" in window["definition"]) is not cut
    assert ("drain included" in (tmp_path / "out" / "report.html").read_text()) is not cut


@pytest.mark.parametrize(
    ("cut", "met"),
    [("max_context_tokens=5", False), ("measurement.end_s=1e-9", None), ("memory.num_gpu_blocks=2", False)],
)
def test_without_data_figures_are_null_and_the_table_shows_dashes(command, scenario_file, tmp_path, cut, met):
    limits = ("--set", "slo.ttft_s.p99=1", "--set", "slo.tpot_s.p50=1")
    summary = json.loads(command("run", scenario_file, "--json", "--set", cut, *limits).out)
    for metric in summary["metrics"].values():
        assert {metric[key] for key in ("mean", "p50", "p90", "p95", "p99", "p999", "min", "max")} == {None}
        assert metric["count"] == 0
    assert {objective["met"] for objective in summary["slo"].values()} == {met}
    table = command("run", scenario_file, "--out", tmp_path / "out", "--set", cut, *limits).out
    assert re.search(r"TTFT \(s\)( +-)+ *\n", table)
    verdict = "no data" if met is None else "missed, kept by 0.00% of requests"
    assert f"objective ttft_s.p99 <= 1 s: {verdict}" in table


def test_version(command):
    assert command("--version").out == f"servetwin {version('servetwin')}\n"


@pytest.mark.parametrize("arguments", [(), ("trace",)])
def test_without_a_command_the_help_is_shown(command, arguments):
    ended = command(*arguments)
    assert ended.code == 2
    assert "Commands:" in ended.out + ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("compare",),
        ("memory",),
        ("models",),
        ("hardware",),
        ("doctor",),
        ("trace",),
        ("trace", "describe"),
        ("trace", "list"),
        (),
    ],
)
def test_every_help_is_plain_and_whole(command, arguments):
    ended = command(*arguments, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: {' '.join(('servetwin', *arguments))} ")
    assert "..." not in ended.out.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("runn",),
            "the command is 'runn', expected one of calibrate, chat, compare, dashboard, doctor, explain, fidelity, "
            "hardware, live, memory, models, parity, plan, policies, ",
        ),
        (
            ("trace", "lits"),
            "the command is 'lits', expected one of cache, describe, fetch, list. Did you mean 'list'?",
        ),
        (("don't",), 'the command is "don\'t", expected one of '),
        (("run",), "Missing argument 'SCENARIO'."),
        (
            ("run", "x.yaml", "--bogus"),
            "the option is '--bogus', expected one of --bands, --help, --json, --out, --quiet, --set, ",
        ),
        (("run", "x.yaml", "--quite"), "--strict. Did you mean '--quiet'?"),
        (("run", "x.yaml", "--set"), "Option '--set' requires an argument."),
        (("run", "a", "b", "c"), "Got unexpected extra argument"),
        (("models", "--jsn"), "the option is '--jsn', expected one of --help, --json. Did you mean '--json'?"),
        (("compare", "x.yaml", "--seeds", "two"), "--seeds is 'two', expected a valid integer."),
        (("trace", "describe", "x.csv", "--arrival-unit", "h"), "--arrival-unit is 'h', expected one of ms, ns, s, "),
        (("calibrate", "import", "aiconfig"), "vidur. Did you mean 'aiconfigurator'?"),
    ],
)
def test_wrong_usage_is_told_in_two_lines(command, arguments, said):
    ended = command(*arguments)
    assert (ended.code, ended.out) == (2, "")
    first, *more = ended.err.splitlines()
    assert first.startswith("servetwin: ")
    assert said in first
    assert not more or re.fullmatch("Try 'servetwin [a-z ]*--help'.", more.pop())
    assert not more


@pytest.mark.parametrize(("listing", "known"), [("models", "llama-3.1-8b"), ("hardware", "h100-sxm")])
def test_facts_as_table_and_json(command, listing, known):
    assert known in command(listing).out
    rows = {row["name"]: row for row in json.loads(command(listing, "--json").out)}
    assert len({tuple(row) for row in rows.values()}) == 1
    assert known in rows


def test_facts_of_a_model_are_those_of_the_model_card(command):
    rows = {row["name"]: row for row in json.loads(command("models", "--json").out)}
    llama = rows["llama-3.1-8b"]
    assert (llama["parameters"], llama["kv_bytes_per_token"], llama["layers"]) == (8_030_261_248, 131_072, 32)


IMPORT_NAMES = {"pyyaml": "yaml"}
OWN_PACKAGES = (
    "servetwin",
    "dashboard",
    "papers",
    "fidelity",
    "experiments",
    "calibrate",
    "simcore",
    "policies",
    "hardware_profiles",
)


def base_requirements():
    return {re.split(r"[^\w.-]", line)[0] for line in requires("servetwin") or () if "extra ==" not in line}


def test_a_base_install_pulls_nothing_heavy():
    base = {"simpy", "numpy", "scipy", "pydantic", "pyarrow", "pyyaml", "plotly", "typer", "rich"}
    assert base_requirements() == base


LIVE_COMMANDS = (
    "calibrate_command.py",
    "calibration.py",
    "calibration_collectives.py",
    "calibration_targets.py",
    "chat_command.py",
    "clock_names.py",
    "live_command.py",
    "live_device.py",
    "live_options.py",
    "operator_errors.py",
    "validate_command.py",
)
"""They need the extra ``live``, and import it when they run."""
PAGES = REPOSITORY / "dashboard" / "app"
"""They need the extra ``dashboard``, and nothing else imports them."""


def test_every_import_is_of_a_base_requirement():
    allowed = {*sys.stdlib_module_names, *OWN_PACKAGES, "pydantic_core"}
    allowed |= {IMPORT_NAMES.get(name, name) for name in base_requirements()}
    for path in (file for package in OWN_PACKAGES for file in (REPOSITORY / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                extra = path.name in LIVE_COMMANDS and name.partition(".")[0] in ("live", "torch")
                extra |= PAGES in path.parents and name == "streamlit"
                extra |= path.name == "ray_runner.py" and name == "ray"
                assert extra or name.partition(".")[0] in allowed, f"{path} imports {name}"


def test_python_minus_m_and_a_reader_that_goes_away():
    process = subprocess.Popen(
        [sys.executable, "-m", "servetwin", "hardware", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(1) == b"["
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() in (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [("models",), ("models", "--json"), ("trace", "list")])
def test_output_that_cannot_be_written_is_one_sentence(arguments):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "servetwin", *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    said = b"servetwin: standard output cannot be written (No space left on device).\n"
    assert (process.returncode, process.stderr) == (2, said)


def test_a_closed_output_is_no_error():
    process = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m servetwin models >&-"], stderr=subprocess.PIPE, check=False
    )
    assert (process.returncode, process.stderr) == (0, b"")


def test_letters_that_the_output_does_not_have_are_escaped(scenario_file, tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "servetwin", "run", scenario_file, "--out", tmp_path / "out"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    assert b"throughput: " in process.stdout


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.1, 0.2, 0.3, 0.5])
def test_an_interrupt_while_modules_are_imported_is_quiet(after_s, scenario_file, tmp_path):
    code = "import sys; from servetwin.cli import main; print('up', flush=True); sys.exit(main())"
    endless = ("--set", "workload.requests=1e9")
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", scenario_file, "--json", *endless],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    time.sleep(0.02 + after_s)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")


def test_an_interrupt_in_a_late_import_that_swallows_it_is_not_lost(tmp_path):
    (tmp_path / "swallowing.py").write_text(
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(0.1)\nexcept BaseException:\n    pass\n"
    )
    code = (
        "import sys, time; from servetwin import app, cli\n"
        "app.app = lambda **_: (__import__('swallowing'), time.sleep(20))\n"
        "cli.main()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY}:{tmp_path}"},
        timeout=15,
        check=False,
        capture_output=True,
    )
    assert (process.returncode, process.stderr) == (130, b"")


def test_an_interrupt_leaves_nothing_behind(scenario_file, tmp_path):
    endless = ("--set", "workload.requests=1e9", "--set", "workload.arrivals.rate_per_s=20")
    folder = tmp_path / "folder"
    code = "import sys; from servetwin.cli import main; print('up', flush=True); sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", scenario_file, "--out", folder / "out", *endless],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == [scenario_file]


def test_parity_says_what_it_compared(command, shared_data, tmp_path):
    recording = shared_data.parent / "oracle" / "async" / "long-prompts-2.json"
    ended = command("parity", str(recording))
    assert (ended.code, ended.err) == (0, "")
    steps = len(json.loads(recording.read_text())["steps"])
    assert ended.out == (
        f"long-prompts-2.json: {steps} steps equal (vLLM V1, asynchronous; compared preempted, scheduled, "
        "cached_tokens, finished, free_blocks_after)\n"
    )
    document = json.loads(recording.read_text())
    document["steps"][3]["free_blocks_after"] -= 1
    (tmp_path / "changed.json").write_text(json.dumps(document))
    ended = command("parity", str(tmp_path / "changed.json"))
    assert ended.code == 1
    assert "differs at step 3, free_blocks_after" in ended.out
