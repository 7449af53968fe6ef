"""What comes in many kinds is one file each: added to a copy of the tree, it is found, runs and is documented."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("policies", "simcore", "hardware_profiles", "servetwin", "experiments", "fidelity", "dashboard", "calibrate")
COPIED += ("tools", "docs", "scenarios", "kernels", "benchmarks", "tests/kernels")

POLICY = '''"""Shortest prompt first."""

from dataclasses import dataclass

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class ShortestPromptFirst(Ordering):
    """Serve the request with the shortest prompt first.

    Source: this test.
    """

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        return (request.prompt_tokens,)
'''
METRICS = """
METRICS += (
    Latency(
        name="decode_s",
        short="decode",
        title="Time in decode",
        definition="first token to last token",
        of_requests=lambda requests: requests["end_s"] - requests["first_token_s"],
        compared=("mean",),
        drawn=True,
    ),
    Figure(
        name="longest_prompt",
        short="longest prompt",
        title="Longest prompt",
        definition="tokens of the longest prompt that arrived",
        unit="tokens",
        place="counts.longest_prompt",
        of_run=lambda run: float(run.requests["prompt_tokens"].max()),
        line="prompts",
        wording="{:,.0f} tokens in the longest",
        compared=True,
    ),
)
"""
KERNEL = '''"""Every element twice."""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.case import Case
from kernels.launch import LaunchConfig, operation

CONFIG = LaunchConfig({"block": 1024}, num_warps=4, num_stages=1)


def twice_reference(x: torch.Tensor) -> torch.Tensor:
    """``2 * x``."""
    return 2 * x


@triton.jit
def _twice(x, out, width, block: tl.constexpr):
    columns = tl.program_id(0) * block + tl.arange(0, block)
    inside = columns < width
    tl.store(out + columns, 2 * tl.load(x + columns, mask=inside), mask=inside)


@operation(twice_reference)
def twice(x: torch.Tensor, *, config: LaunchConfig | None = None) -> torch.Tensor:
    """``2 * x`` of ``x`` [width]."""
    out = torch.empty_like(x)
    config = config or CONFIG
    _twice[(triton.cdiv(len(x), config.tiles["block"]),)](x, out, len(x), **config.arguments())
    return out


def cases(toy: bool) -> list[Case]:
    """One row."""
    width = 100 if toy else 1 << 20

    def prepare(device: torch.device):
        x = torch.randn(width, device=device)
        return lambda: twice(x)

    return [Case("twice", "row", "fp32", {"width": width}, prepare, 8 * width, width)]


def compiled_forms() -> list[CompiledForm]:
    """One form."""
    types = {"x": "*fp32", "out": "*fp32", "width": "i32"}
    return [CompiledForm(_twice, "fp32", types, {}, dict.fromkeys(CAPABILITIES, CONFIG), ("width",))]
'''
KERNEL_CHECK = """
import kernels, torch
from benchmarks.kernels.__main__ import main
from benchmarks.kernels.compile_table import shipped_forms

assert kernels.twice is kernels.OPERATIONS["twice"]
assert kernels.twice(torch.ones(3)).tolist() == [2, 2, 2]
assert {capability for form, capability in shipped_forms() if form.name == "twice fp32"} == {80, 90, 100}
main(["twice", "--toy"])
"""
CHECK = """
import io, json
from rich.console import Console
import servetwin
from dashboard.report import render_report
from experiments.comparison.compared_metrics import chosen_metrics
from servetwin.run_table import print_run

result = servetwin.simulate({
    "model": "added-model", "engine": "added-engine", "cluster": {"accelerator": "added-gpu"},
    "scheduler": {"ordering": "shortest-prompt"},
    "workload": {"requests": 20, "arrivals": {"name": "constant", "rate_per_s": 50},
                 "prompt_tokens": {"name": "uniform", "low": 5, "high": 50},
                 "output_tokens": {"name": "fixed", "tokens": 5}},
})
terminal = io.StringIO()
print_run(result, Console(file=terminal, width=200))
print(json.dumps({
    "finished": result.summary["counts"]["finished"], "longest": result.summary["counts"]["longest_prompt"],
    "decode": result.summary["metrics"]["decode_s"]["count"], "terminal": terminal.getvalue(),
    "report": render_report(result, "added"), "compared": [metric.key for metric in chosen_metrics(None)],
}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The tree with one file added, or one touched, for each kind of addition."""
    place = tmp_path_factory.mktemp("copy") / "tree"
    for name in COPIED:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "pyproject.toml"):
        shutil.copy(path, place)
    (place / "policies" / "ordering" / "shortest_prompt.py").write_text(POLICY, encoding="utf-8")
    _as_another(place / "hardware_profiles" / "l4.yaml", "added-gpu")
    _as_another(place / "simcore" / "models" / "presets" / "smollm2-135m.json", "added-model")
    _as_another(place / "simcore" / "engines" / "vllm-v1.yaml", "added-engine")
    (place / "kernels" / "twice.py").write_text(KERNEL, encoding="utf-8")
    wrong = KERNEL.replace("2 * tl.load", "3 * tl.load").replace("twice", "thrice_not_twice")
    (place / "kernels" / "thrice_not_twice.py").write_text(wrong, encoding="utf-8")
    definitions = place / "simcore" / "metrics" / "definitions.py"
    definitions.write_text(definitions.read_text(encoding="utf-8") + METRICS, encoding="utf-8")
    return place


def _as_another(path: Path, name: str) -> None:
    text = path.read_text(encoding="utf-8").replace(path.stem, name)
    path.with_name(f"{name}{path.suffix}").write_text(text, encoding="utf-8")


def run_in(copy: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(copy)} | variables
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


def test_additions_are_found_run_and_shown(copy):
    done = run_in(copy, "-c", CHECK)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["finished"], found["decode"]) == (20, 20)
    assert 5 <= found["longest"] <= 50
    assert "decode (s)" in found["terminal"]
    assert f"prompts: {found['longest']:.0f} tokens in the longest" in found["terminal"]
    for shown in ("Time in decode", "Longest prompt", 'data-plot="decode_s"'):
        assert shown in found["report"]
    assert {"decode_s.mean", "longest_prompt"} <= set(found["compared"])


def test_documents_follow_from_one_script(copy):
    assert run_in(copy, "tools/regenerate.py", "--check").returncode == 1
    made = run_in(copy, "tools/regenerate.py")
    assert made.returncode == 0, made.stderr
    assert run_in(copy, "tools/regenerate.py", "--check").returncode == 0
    shown = {
        "docs/reference/policies.md": "### shortest-prompt",
        "docs/reference/engines.md": "`added-engine`",
        "docs/reference/outputs.md": "| `metrics.decode_s` |",
        "README.md": f"on {len(list((copy / 'hardware_profiles').glob('*.yaml')))} accelerators",
    }
    for document, text in shown.items():
        assert text in (copy / document).read_text(encoding="utf-8"), document


def test_added_kernels_are_operations_timed_and_held_against_their_references(copy):
    interpreted = {"TRITON_INTERPRET": "1"}
    timed = run_in(copy, "-c", KERNEL_CHECK, **interpreted)
    assert "twice row fp32 width=100: ran in" in timed.stdout, timed.stderr
    compared = run_in(copy, "-m", "pytest", "-n", "0", "tests/kernels/test_cases.py", "-k", "twice", **interpreted)
    assert "[thrice_not_twice row" in compared.stdout, compared.stdout
    assert "1 failed, 1 passed" in compared.stdout
