"""A small scenario on disk, and the command line in this process."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from servetwin.cli import main

SCENARIO = """\
model: smollm2-135m
cluster: {accelerator: l4}
workload:
  requests: 20
  arrivals: {name: poisson, rate_per_s: 20}
  prompt_tokens: {name: uniform, low: 20, high: 90}
  output_tokens: {name: fixed, tokens: 10}
"""


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


@pytest.fixture
def scenario_file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs ``servetwin`` with arguments as ``main`` gets them from a shell."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["servetwin", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Outcome(ended.value.code or 0, *capsys.readouterr())

    return run
