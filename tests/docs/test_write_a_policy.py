"""The guide's code, and the example package that it describes, installed for real."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "write-a-policy.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "shortest-prompt"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment in which Python finds the example package, installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "package"
    source.mkdir()
    for path in EXAMPLE.glob("*.*"):
        (source / path.name).write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", folder, source], check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(folder)}


def python(environment, *arguments):
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


def test_the_guide_shows_the_example_package():
    policy = blocks("python")[0].split("\n", 1)[1].strip()
    package = (EXAMPLE / "shortest_prompt.py").read_text(encoding="utf-8")
    assert package.split('"""\n\n', 1)[1].strip() == policy
    assert blocks("toml")[0].strip() in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    assert len(policy.splitlines()) <= 40


def test_the_installed_policy_is_listed(installed):
    listed = json.loads(python(installed, "-m", "servetwin", "policies", "ordering", "--json"))
    summary = "Serve short prompts first; waiting a second is worth tokens_per_s of prompt."
    assert {"kind": "ordering", "name": "shortest-prompt", "summary": summary} in listed


def test_the_comparison_of_the_guide_runs_and_the_policy_wins(installed):
    lines = python(installed, "-c", blocks("python")[1]).splitlines()
    found = dict(re.match(r"(\S+): mean TTFT ([\d.]+) s", line).groups() for line in lines)
    assert float(found["shortest-prompt"]) < 0.9 * float(found["fcfs"])
