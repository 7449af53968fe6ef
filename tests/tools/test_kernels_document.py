"""``docs/results/kernels.md`` shows what its script makes of the committed measurements."""

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_what_the_script_makes():
    script = runpy.run_path(str(ROOT / "tools" / "kernel_results.py"))
    assert (ROOT / "docs" / "results" / "kernels.md").read_text(encoding="utf-8") == script["document"]()


def test_a_benchmark_run_is_told_with_its_machine_its_ratios_and_what_is_missing(tmp_path):
    machine = {"gpu": "a GPU", "driver": "1.2", "cuda": "13.0", "torch": "2.0", "triton": "3.0", "python": "3.11"}
    machine |= {"copy_bytes_per_s": 4.2e12, "matmul_bf16_per_s": 790e12}
    missing = {"kernel": "moe", "form": "silu", "shape": {"tokens": 5}, "reason": "OutOfMemoryError: no"}
    ratio = {"title": "GEMM", "form": "dense", "shape": {"m": 2048}, "ratio": 0.876, "wanted": 0.85}
    summary = {"machine": machine, "results": [{}, {}], "missing": [missing], "ratios": [ratio]}
    (tmp_path / "a-gpu").mkdir()
    (tmp_path / "a-gpu" / "results.json").write_text(json.dumps(summary), encoding="utf-8")
    lines = list(runpy.run_path(str(ROOT / "tools" / "kernel_results.py"))["benchmarked"](tmp_path))
    text = "\n".join(lines)
    assert "## Against targets, on a GPU" in lines
    assert "driver 1.2" in text
    assert "4.20 TB/s copied" in text
    assert "- Not timed: moe silu {'tokens': 5}: OutOfMemoryError: no" in lines
    assert "| GEMM (dense) | m=2048 | 0.88 | 0.85 | yes |" in text
