"""The guide's code, and the example package that it describes, installed for real."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "write-a-policy.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "shortest-prompt"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment in which Python finds the example package, installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "package"
    source.mkdir()
    for name in ("pyproject.toml", "shortest_prompt.py"):  # and not what an installation of the folder itself leaves
        (source / name).write_bytes((EXAMPLE / name).read_bytes())
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
    assert {"kind": "ordering", "name": "shortest-prompt", "summary": summary, "source": "own."} in listed


def test_the_comparison_of_the_guide_runs_and_the_policy_wins(installed):
    lines = python(installed, "-c", blocks("python")[1]).splitlines()
    found = dict(re.fullmatch(r"(\S+): (mean TTFT .*)", line).groups() for line in lines)
    means = {name: float(re.match(r"mean TTFT ([\d.]+) s", said)[1]) for name, said in found.items()}
    assert means["shortest-prompt"] < 0.9 * means["fcfs"]
    assert found["shortest-prompt"].endswith("better")


def test_the_command_of_the_guide_names_the_same_variants(installed, tmp_path):
    scenario = re.search(r"scenario = (\{.*?\n\})", blocks("python")[1], flags=re.DOTALL)[1]
    (tmp_path / "scenario.yaml").write_text(scenario.replace("1000", "50"))
    (command,) = re.findall(r"`servetwin (compare [^`]*)`", GUIDE)
    arguments = command.replace("scenario.yaml", str(tmp_path / "scenario.yaml")).split()
    compared = json.loads(python(installed, "-m", "servetwin", *arguments, "--json"))
    assert compared["variants"] == ["fcfs", "shortest-prompt"]


def test_the_routing_policy_of_the_guide_runs(tmp_path):
    (tmp_path / "guide_routing.py").write_text(blocks("python")[2], encoding="utf-8")
    ask = """
from policies.routing import Routing
from guide_routing import FewestTokensToCompute
from tests.policies.views import FakeReplica, FakeRequest
replicas = [FakeReplica(waiting_tokens=50), FakeReplica(waiting_tokens=90, cached=60), FakeReplica(waiting_tokens=50)]
assert issubclass(FewestTokensToCompute, Routing)
print(FewestTokensToCompute().choose(FakeRequest(), replicas))
"""
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    assert python({**os.environ, "PYTHONPATH": paths}, "-c", ask).split() == ["1"]
