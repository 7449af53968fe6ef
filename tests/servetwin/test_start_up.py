"""The command line starts at once: what a command does not need is not imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from servetwin.app import CALIBRATE_COMMANDS, COMMANDS, HARDWARE_COMMANDS, TRACE_COMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = {"numpy", "scipy", "pyarrow", "plotly", "pydantic", "rich", "simpy", "yaml"}


def imported(code: str, folder: Path) -> set[str]:
    """The heavy packages that a fresh interpreter has imported after running ``code``."""
    tried = f"import json, sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\n"
    asked = tried + "print()\nprint(json.dumps(list(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"PYTHONPATH": str(REPOSITORY)},
    )
    return HEAVY & set(json.loads(ended.stdout.splitlines()[-1]))


def imported_by(folder: Path, *arguments: str) -> set[str]:
    return imported(f"sys.argv = {['servetwin', *arguments]}; from servetwin.cli import main; main()", folder)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ()])
def test_help_imports_no_library_but_typer(arguments, tmp_path):
    assert imported_by(tmp_path, *arguments) == set()


@pytest.mark.parametrize("arguments", [("trace", "--help"), ("calibrate", "--help"), ("doctor",)])
def test_parts_import_what_typer_itself_uses_and_no_more(arguments, tmp_path):
    assert imported_by(tmp_path, *arguments) <= {"pydantic"}


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (("policies",), {"numpy", "scipy", "pyarrow", "plotly", "simpy", "yaml"}),
        (("models",), {"scipy", "pyarrow", "plotly"}),
        (("hardware",), {"scipy", "pyarrow", "plotly"}),
        (("trace", "list"), {"scipy", "pyarrow", "plotly", "simpy"}),
        (("run", "small.yaml", "--json"), {"scipy", "pyarrow", "plotly"}),
        (("run", "small.yaml", "--quiet"), {"scipy"}),
        (("memory", "small.yaml"), {"scipy", "pyarrow", "plotly"}),
        (("explain", "small.yaml"), {"scipy", "pyarrow", "plotly"}),
    ],
)
def test_a_command_imports_what_it_needs(arguments, spared, scenario_file, tmp_path):
    assert not imported_by(tmp_path, *arguments) & spared


def test_import_servetwin_is_light(tmp_path):
    assert imported("import servetwin", tmp_path) == set()
    assert imported("import servetwin; servetwin.simulate", tmp_path) & {"scipy", "pyarrow", "plotly", "rich"} == set()


@pytest.mark.parametrize(
    ("group", "commands"),
    [
        ((), COMMANDS),
        (("trace",), TRACE_COMMANDS),
        (("calibrate",), CALIBRATE_COMMANDS),
        (("hardware",), HARDWARE_COMMANDS),
    ],
)
def test_the_list_of_commands_says_what_each_says_of_itself(group, commands, command):
    listed = " ".join(command(*group, "--help").out.split())
    for name, lazy in commands.items():
        assert f"{name} {lazy.line}" in listed
        assert " ".join(command(*group, name, "--help").out.split()).partition(lazy.line)[1]
