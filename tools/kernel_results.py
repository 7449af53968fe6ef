"""Write docs/results/kernels.md from committed measurements and compilations: ``python tools/kernel_results.py``.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
``benchmarks/kernels/sweep.py`` and ``benchmarks/kernels/compile_table.py`` make what it reads.
"""

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, not another that may be installed

from benchmarks.kernels import sweeps_of  # noqa: E402
from benchmarks.kernels.acceptance import Ratio, told  # noqa: E402
from benchmarks.kernels.compile_table import TABLE  # noqa: E402
from benchmarks.kernels.measured import (  # noqa: E402
    RESULTS,
    WITHIN,
    Candidate,
    by_case,
    read_candidates,
    told_config,
)
from benchmarks.kernels.shipped import shipped_configs  # noqa: E402
from tools.page_template import filled  # noqa: E402
from tools.publishing import publish_page  # noqa: E402

DOCUMENT = ROOT / "docs" / "results" / "kernels.md"
PROVENANCE = yaml.safe_load((RESULTS / "h200-sweeps.yaml").read_text(encoding="utf-8"))
H200 = yaml.safe_load((ROOT / "hardware_profiles" / "h200-sxm.yaml").read_text(encoding="utf-8"))["datasheet"]
PEAKS = {name: 1e12 * tera for name, tera in H200["peak_dense_tera_operations_per_s"].items() if name != "source"}
BANDWIDTH = 1e9 * H200["memory_bandwidth"]["gb_per_s"]
CACHE_BYTES = H200["on_chip_memory"]["l2_mib"] * 2**20
EIGHT_BITS = ("fp8", "int8")

_BENCHMARKED = (
    "One run of `make bench-kernels` (driver {driver}, torch {torch}, triton {triton}, CUDA {cuda}, Python {python};\n"
    "{timed} cases). Ratios are to what the same GPU reached meanwhile: {copy} TB/s copied (read and written),\n"
    "{matmul} TFLOP/s in a large bf16 GEMM of the vendor's library, or another kernel at the same shape."
)


def is_gemm(row: Candidate) -> bool:
    """Whether a ceiling of GEMMs may be taken from it."""
    return row.kernel in ("gemm", "w8a8")


def seconds(row: Candidate) -> float:
    """Its time; the rows here have one."""
    assert row.median_s is not None
    return row.median_s


def timed_rows(cases: list[list[Candidate]], ceilings: dict[str, float]) -> Iterator[str]:
    """The table of the cases of one kernel."""
    shipped = shipped_configs(rows[0] for rows in cases)
    yield ""
    yield "| form | shape | best, us | shipped, us | TFLOP/s | TB/s | of datasheet | of this run's best |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for rows in cases:
        best = rows[0]
        config = shipped.get(best.place)
        own = [row for row in rows if config is not None and dict(row.config) == told_config(config)]
        rate, flow = best.operations / seconds(best), best.bytes_moved / seconds(best)
        eight = best.dtype in EIGHT_BITS and is_gemm(best)
        of_peak = rate / PEAKS["fp8" if eight else "bf16"]
        of_bandwidth = flow / BANDWIDTH if best.bytes_moved > CACHE_BYTES else 0.0
        if of_peak > of_bandwidth:
            share, own_share = of_peak, rate / ceilings["eight" if eight else "bf16"]
        else:
            share, own_share = of_bandwidth, flow / ceilings["copy"]
        shape = " ".join(f"{name}={value}" for name, value in best.shape.items() if value)
        matters = of_bandwidth or of_peak > 0.1
        cells = [
            best.form,
            shape,
            f"{seconds(best) * 1e6:.1f}",
            f"{seconds(own[0]) * 1e6:.1f}" if own else "–",
            f"{rate / 1e12:.0f}" if rate >= 1e12 else "–",
            f"{flow / 1e12:.2f}",
            f"{share:.0%}" if matters else "–",
            f"{own_share:.0%}" if matters else "–",
        ]
        yield f"| {' | '.join(cells)} |"


def benchmarked(folder: Path) -> Iterator[str]:
    """What ``make bench-kernels`` left by accelerator: where, the ceilings, which targets were reached."""
    for path in sorted(folder.glob("*/results.json")):
        summary = json.loads(path.read_text(encoding="utf-8"))
        yield ""
        yield f"## Against targets, on {summary['machine']['gpu']}"
        yield ""
        yield _BENCHMARKED.format(timed=len(summary["results"]), **_rates(summary["machine"]))
        yield ""
        for each in summary["missing"]:
            yield f"- Not timed: {each['kernel']} {each['form']} {each['shape']}: {each['reason']}"
        yield ""
        yield told([Ratio(**each) for each in summary["ratios"]])


def _rates(machine: dict[str, Any]) -> dict[str, Any]:
    copy, matmul = machine["copy_bytes_per_s"] / 1e12, machine["matmul_bf16_per_s"] / 1e12
    return {**machine, "copy": f"{copy:.2f}", "matmul": f"{matmul:.0f}"}


def compiled_rows() -> Iterator[str]:
    """The table of forms, chips beside each other."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    with TABLE.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            cell = f"{line['registers']}, {int(line['shared_bytes']) / 1024:.0f}"
            if line["stack_bytes"] != "0":
                cell += f", stack {line['stack_bytes']}"
            found.setdefault((line["kernel"], line["form"]), {})[int(line["capability"])] = cell
    yield ""
    yield "| kernel | form | sm_80 | sm_90 | sm_100 |"
    yield "|---|---|---:|---:|---:|"
    for (kernel, form), cells in found.items():
        yield f"| {kernel} | {form} | {' | '.join(cells.get(chip, '–') for chip in (80, 90, 100))} |"


def one(cases: list[list[Candidate]], kernel: str, form: str, **shape: int) -> Candidate:
    """The fastest candidate of the first case that has this form and these figures of a shape."""
    return next(
        rows[0]
        for rows in cases
        if (rows[0].kernel, rows[0].form) == (kernel, form) and shape.items() <= rows[0].shape.items()
    )


def further_off(cases: list[list[Candidate]]) -> Iterator[str]:
    """The table of cases whose shipped launch is further off the fastest than others are."""
    shipped = shipped_configs(rows[0] for rows in cases)
    yield "| kernel | form | type | shape | shipped over best |"
    yield "|---|---|---|---|---:|"
    for rows in cases:
        config = shipped.get(rows[0].place)
        if config is None:
            continue
        as_exact = [row for row in rows if not told_config(config).get("promote") or row.config["promote"]]
        own = next(row for row in as_exact if dict(row.config) == told_config(config))
        ratio = seconds(own) / seconds(as_exact[0])
        if ratio > WITHIN:
            shape = " ".join(f"{name}={value}" for name, value in own.shape.items() if value)
            yield f"| {own.kernel} | {own.form} | {own.dtype} | {shape} | {ratio:.2f} |"


def known(cases: list[list[Candidate]]) -> dict[str, str]:
    """Figures of what to know of."""

    def flow(form: str) -> float:
        row = one(cases, "paged_decode", form, batch=64, context=8192, head_dim=128, heads=64, splits=0)
        return row.bytes_moved / seconds(row) / 1e12

    scaled = [flow(f"{cache} cache, block size {size}") for cache in ("fp8", "int8") for size in (16, 64)]
    wide = [flow(f"bf16 cache, block size {size}") for size in (16, 64)]
    prefix = {
        kind: seconds(one(cases, "flash_prefill", f"over {kind}", tokens=2048, prefix=8192, head_dim=128))
        for kind in ("bf16", "int8", "fp8")
    }
    capped = next(rows for rows in cases if (rows[0].kernel, rows[0].form) == ("flash_prefill", "cap 50"))
    shipped = next(sweep.shipped for sweep in sweeps_of("flash_prefill") if sweep.case.form == "cap 50")
    assert shipped is not None
    own = next(row for row in capped if dict(row.config) == told_config(shipped))
    sampled = one(cases, "sample", "top-p")
    return {
        "eight_bit_decode": f"{min(scaled):.1f} to {max(scaled):.1f}",
        "bf16_decode": f"{min(wide):.1f}",
        "scaled_prefill": f"{prefix['int8'] / prefix['bf16']:.1f} to {prefix['fp8'] / prefix['bf16']:.1f}",
        "capped": f"{seconds(own) / seconds(capped[0]):.2f}",
        "top_p": f"{seconds(sampled) * 1e6:.0f}",
        "rows": f"{sampled.shape['rows']}",
        "vocabulary": f"{sampled.shape['vocabulary']:,}",
        "temperature": f"{seconds(one(cases, 'sample', 'temperature', **sampled.shape)) * 1e6:.0f}",
    }


def timed(cases: list[list[Candidate]], ceilings: dict[str, float]) -> Iterator[str]:
    """A section for each kernel."""
    for kernel in sorted({rows[0].kernel for rows in cases}):
        yield f"### {kernel}"
        yield from timed_rows([rows for rows in cases if rows[0].kernel == kernel], ceilings)
        yield ""


def document() -> str:
    """The whole document."""
    cases = list(by_case(read_candidates(RESULTS / "h200-sweeps.parquet")).values())
    rates = [(rows[0].dtype in EIGHT_BITS, rows[0].operations / seconds(rows[0])) for rows in cases if is_gemm(rows[0])]
    ceilings = {
        "bf16": max(rate for eight, rate in rates if not eight),
        "eight": max(rate for eight, rate in rates if eight),
        "copy": max(rows[0].bytes_moved / seconds(rows[0]) for rows in cases if rows[0].kernel == "kv_copy"),
    }
    machine = {name: PROVENANCE[name] for name in ("gpu", "driver", "torch", "triton", "python", "commit")}
    text = filled(
        Path(__file__).with_suffix(".md"),
        **machine,
        date=str(PROVENANCE["date"]),
        method=PROVENANCE["method"].replace("`python -m benchmarks.kernels.sweep`: each", "Each").strip(),
        within=f"{WITHIN - 1:.0%}",
        cache_mib=str(H200["on_chip_memory"]["l2_mib"]),
        bandwidth=str(BANDWIDTH / 1e12),
        bf16=f"{PEAKS['bf16'] / 1e12:.0f}",
        eight=f"{PEAKS['fp8'] / 1e12:.0f}",
        best_bf16=f"{ceilings['bf16'] / 1e12:.0f}",
        best_eight=f"{ceilings['eight'] / 1e12:.0f}",
        best_copy=f"{ceilings['copy'] / 1e12:.2f}",
        further_off="\n".join(further_off(cases)),
        timed="\n".join(timed(cases, ceilings)).strip(),
        benchmarked="\n".join(benchmarked(RESULTS)).strip(),
        compiled="\n".join(compiled_rows()).strip(),
        **known(cases),
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    text = document()
    return publish_page(DOCUMENT, text, check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
