"""``servetwin dashboard`` starts Streamlit on this machine alone, and refuses what it cannot show."""

import os

import pytest

from servetwin import dashboard_command


@pytest.fixture
def started(monkeypatch):
    """The commands that would have taken this process's place."""
    found = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: found.append(arguments))
    return found


def test_it_listens_on_this_machine_alone_and_tells_nobody(command, started):
    assert command("dashboard", "--port", "9000").code == 0
    [arguments] = started
    assert {"--server.address=localhost", "--server.port=9000", "--browser.gatherUsageStats=false"} <= set(arguments)
    assert arguments[-1] == "--"


def test_run_folders_are_handed_on(command, started, scenario_file, tmp_path):
    assert command("run", str(scenario_file), "--out", str(tmp_path / "mine"), "--quiet").code == 0
    assert command("dashboard", str(tmp_path / "mine")).code == 0
    assert started[0][-2:] == ["--", str(tmp_path / "mine")]


def test_what_it_cannot_show_is_refused(command, started, tmp_path, monkeypatch):
    assert command("dashboard", str(tmp_path)).err == (
        f"servetwin: {tmp_path}: holds no run, expected a folder that servetwin run wrote.\n"
    )
    assert "--port is 3" in command("dashboard", "--port", "3").err
    monkeypatch.setattr(dashboard_command, "find_spec", lambda name: None)
    missing = command("dashboard")
    assert (missing.code, missing.err) == (
        2,
        "servetwin: The dashboard needs Streamlit: pip install 'servetwin[dashboard]'.\n",
    )
    assert started == []
