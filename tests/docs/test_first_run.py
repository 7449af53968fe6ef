"""The commands of the first-run page are commands, and its scenario is a scenario."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

import servetwin
from servetwin.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "start" / "first-run.md").read_text(encoding="utf-8")
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("servetwin ") and "compare" not in line]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, tmp_path, monkeypatch, capsys):
    _, *arguments = shlex.split(command)
    arguments = [str(ROOT / word) if word.startswith("scenarios/") else word for word in arguments]
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "run":
        arguments += ["--set", "workload.window_s=[0, 20]"]
    monkeypatch.setattr(sys, "argv", ["servetwin", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out


def test_the_scenario_of_the_page_runs():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert servetwin.simulate(yaml.safe_load(text)).summary["counts"]["finished"] == 500
