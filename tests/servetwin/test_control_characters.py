"""What inputs hold reaches a terminal or a page as text alone."""

import servetwin
from dashboard.figures.service import tenant_service
from dashboard.markup import text
from tests.dashboard.test_service_figure import SCENARIO
from tests.fidelity.request_run_folder import write_run

ESCAPE = "\x1b]0;PWNED\x07\x1b[31m"


def test_names_of_folders_and_files_are_escaped(command, scenario_file, tmp_path):
    out = tmp_path / f"out{ESCAPE}"
    assert "\x1b" not in command("run", scenario_file, "--out", out).out
    plot = tmp_path / f"plot{ESCAPE}.html"
    (tmp_path / "t.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,1,1\n")
    assert "\x1b" not in command("trace", "describe", tmp_path / "t.csv", "--plot", plot).out
    assert "\x1b" not in command("run", scenario_file, f"--no-such{ESCAPE}").err


def test_names_in_measured_runs_are_escaped(command, tmp_path):
    ended = command(
        "fidelity", "--per-request", write_run(tmp_path / "run", vllm_version=f"0.19.0{ESCAPE}"), "--jobs", "1"
    )
    assert ended.code == 0
    assert "PWNED" in ended.out
    assert "\x1b" not in ended.out


def test_names_of_tenants_in_legends_are_text_and_short():
    tenants = [{"name": "<b>a</b>" + ESCAPE, "share": 0.5}, {"name": "b" * 500, "share": 0.5}]
    result = servetwin.simulate(SCENARIO | {"workload": SCENARIO["workload"] | {"tenants": tenants}})
    figure = tenant_service(result.requests, result.summary["run"]["simulated_s"])
    assert len(figure.data) == 2
    for name in (line.name for line in figure.data):
        assert name.isprintable()
        assert "<" not in name
        assert len(name) < 100


def test_pages_hold_no_control_characters():
    assert text(ESCAPE).isprintable()
    assert text("a\nb") == "a\nb"
