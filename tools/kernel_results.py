"""Write docs/results/kernels.md from committed measurements and compilations: ``python tools/kernel_results.py``.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
``benchmarks/kernels/sweep.py`` and ``benchmarks/kernels/compile_table.py`` make what it reads.
"""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, fill
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, not another that may be installed

from benchmarks.kernels import sweeps_of  # noqa: E402
from benchmarks.kernels.acceptance import Ratio, told  # noqa: E402
from benchmarks.kernels.compile_table import TABLE  # noqa: E402
from benchmarks.kernels.measured import RESULTS, Candidate, by_case, read_candidates, told_config  # noqa: E402
from benchmarks.kernels.shipped import shipped_configs  # noqa: E402

DOCUMENT = ROOT / "docs" / "results" / "kernels.md"
PROVENANCE = yaml.safe_load((RESULTS / "h200-sweeps.yaml").read_text(encoding="utf-8"))
H200 = yaml.safe_load((ROOT / "hardware_profiles" / "h200-sxm.yaml").read_text(encoding="utf-8"))["datasheet"]
PEAKS = {name: 1e12 * tera for name, tera in H200["peak_dense_tera_operations_per_s"].items() if name != "source"}
BANDWIDTH = 1e9 * H200["memory_bandwidth"]["gb_per_s"]
CACHE_BYTES = H200["on_chip_memory"]["l2_mib"] * 2**20
EIGHT_BITS = ("fp8", "int8")

INTRODUCTION = """
The operations of the live engine, one file each in `kernels/` with the torch reference beside it: `kernels.NAME(...)`
runs Triton where tensors are on a GPU and the reference on a CPU. Docstrings say what each takes and returns.

Every kernel is tested against its reference in float64, in Triton's interpreter on a CPU. The interpreter is wrong for
bf16 arithmetic, so there only fp16 and fp32 are tested, 8-bit formats with them; it knows no inline assembly, so the
one that unpacks int4 weights is carried out by a test of its own, and large shapes are left out. On a GPU the same
tests run everything, in bf16 too. They did on {date}, on an {gpu} (driver {driver}, torch {torch}, triton {triton},
Python {python}; commit {commit}): all passed but those of dynamic quantisation, whose reference divided less exactly
than the kernel, and has been corrected since. Later changes (launch configurations, the soft cap of prefill, the last
lines of latent attention, how decode attention splits contexts), `w4a16` as it is now and `mixed_attention` have run in
the interpreter alone.

`mixed_attention` takes decodes and prefill chunks in one launch. Whether that beats `flash_prefill` and `paged_decode`
in turn has not been measured: it is there to be chosen, and nothing chooses it by itself. `make bench-kernels` times
both at the same shapes and prints the ratio.
"""

MEASURED = """
Sweeps of launch configurations, in the same run. {method} What a kernel launches by itself is, at each of these shapes,
the fastest that was measured or within 5% of it (`tests/kernels/compiled/test_measured_configs.py`), except where what
is faster spills registers (soft-capped prefill with heads of 256, latent attention over blocks of 16), and at two
GEMMs, of 8192 x 8192 x 8192 in bf16 (15%) and of 16 x 4096 x 4096 in int8 (6%), which the rule for the others does
not fit. 8-bit GEMMs of fp8 with one scale a token and channel are held against those candidates that add sums in
float32 as they do: sums in tensor cores alone are less exact, and faster where many rows are multiplied.

`w4a16` has been written anew since: the times below are of the kernel that had this name at commit {commit}, and say
nothing of the present one's launches.

A sweep calls a kernel again and again on the same inputs. Where those are smaller than the cache of {cache_mib} MiB
they may be read from there, so no share of bandwidth is given. Shares are of the datasheet's figure ({bandwidth} TB/s;
{bf16} and {eight} TFLOP/s dense in 16 and 8 bits at the types' own rates) and of what the best kernel of the same run
reached: {best_bf16} TFLOP/s, the best 16-bit GEMM; {best_eight} TFLOP/s, the best 8-bit GEMM; {best_copy} TB/s
read and written, the best copy of KV blocks. Kernels that only read may exceed the latter. The bound told is whichever
datasheet share is greater. A dash under "shipped" says that launches are not held against what is shipped;
decode attention without `splits` in its shape was timed with the number that it chose then.

**Not measured in that run**: the vendor library's GEMMs (cuBLAS) and a plain copy. So the ratios that
`make bench-kernels` prints (prefill against the library's peak, decode against copy bandwidth, bf16 GEMMs against
the library's, fp8 against bf16, int4 against the library's bf16) have not been taken in one run yet; shares of the
project's own best kernels stand in their place below, and are not the same.
"""

BENCHMARKED = """
One run of `make bench-kernels` (driver {driver}, torch {torch}, triton {triton}, CUDA {cuda}, Python {python}; {timed}
cases): ratios to what the same GPU reached meanwhile, {copy} TB/s copied (read and written) and {matmul} TFLOP/s in the
vendor library's GEMM of 8192 x 8192 x 8192 in bf16, or to another kernel at the same shape.
"""

KNOWN = """
- Decode attention over fp8 and int8 caches reads {eight_bit_decode} TB/s where that over bf16 reads {bf16_decode}: half
  the bytes take nearly the time of all. Conversions to 16 bits before the matrix products are the likely reason, for
  tensor cores take keys and values in the queries' type; it has not been looked into on a GPU.
- Prefill over an int8 or fp8 prefix takes {scaled_prefill} times as long as over a bf16 one.
- Soft-capped prefill with heads of 256 would be {capped} times as fast with tiles that spill 32 bytes a thread.
- Sampling by top-p goes over rows again and again: {top_p} us for 64 rows of 128k, where temperature alone takes
  {temperature} us.
- Times of GEMMs of experts are of one of two layers each, without the sorting of tokens.
"""

COMPILED = """
Registers a thread and KiB of shared memory a program, as ptxas tells for what is shipped; no form uses a stack
on any chip, and none has a trap. Every form is compiled again by the tests and compared with this table.
"""


def is_gemm(row: Candidate) -> bool:
    """Whether a ceiling of GEMMs may be taken from it."""
    return row.kernel in ("gemm", "w8a8")


def prose(text: str) -> Iterator[str]:
    """Paragraphs and list items, folded."""
    for block in dedent(text).strip().split("\n\n"):
        yield ""
        for item in block.split("\n- "):
            mark = "- " if block.startswith("- ") else ""
            words = " ".join(item.removeprefix("- ").split())
            indent = " " * len(mark)
            yield fill(mark + words, 120, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


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
        yield from prose(BENCHMARKED.format(timed=len(summary["results"]), **_rates(summary["machine"])))
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


def known(cases: list[list[Candidate]]) -> str:
    """What to know of, with figures."""

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
    return KNOWN.format(
        eight_bit_decode=f"{min(scaled):.1f} to {max(scaled):.1f}",
        bf16_decode=f"{min(wide):.1f}",
        scaled_prefill=f"{prefix['int8'] / prefix['bf16']:.1f} to {prefix['fp8'] / prefix['bf16']:.1f}",
        capped=f"{seconds(own) / seconds(capped[0]):.2f}",
        top_p=f"{seconds(one(cases, 'sample', 'top-p')) * 1e6:.0f}",
        temperature=f"{seconds(one(cases, 'sample', 'temperature')) * 1e6:.0f}",
    )


def document() -> Iterator[str]:
    """The lines of the document."""
    cases = list(by_case(read_candidates(RESULTS / "h200-sweeps.parquet")).values())
    rates = [(rows[0].dtype in EIGHT_BITS, rows[0].operations / seconds(rows[0])) for rows in cases if is_gemm(rows[0])]
    ceilings = {
        "bf16": max(rate for eight, rate in rates if not eight),
        "eight": max(rate for eight, rate in rates if eight),
        "copy": max(rows[0].bytes_moved / seconds(rows[0]) for rows in cases if rows[0].kernel == "kv_copy"),
    }
    yield "# Kernels"
    yield ""
    yield "Made by `tools/kernel_results.py` from the files in `benchmarks/kernels/results/`."
    yield from prose(INTRODUCTION.format(**PROVENANCE))
    yield ""
    yield "## How fast they are on an H200"
    yield from prose(
        MEASURED.format(
            commit=PROVENANCE["commit"],
            method=PROVENANCE["method"].replace("`python -m benchmarks.kernels.sweep`: each", "Each").strip(),
            cache_mib=H200["on_chip_memory"]["l2_mib"],
            bandwidth=BANDWIDTH / 1e12,
            bf16=f"{PEAKS['bf16'] / 1e12:.0f}",
            eight=f"{PEAKS['fp8'] / 1e12:.0f}",
            best_bf16=f"{ceilings['bf16'] / 1e12:.0f}",
            best_eight=f"{ceilings['eight'] / 1e12:.0f}",
            best_copy=f"{ceilings['copy'] / 1e12:.2f}",
        )
    )
    for kernel in sorted({rows[0].kernel for rows in cases}):
        yield ""
        yield f"### {kernel}"
        yield from timed_rows([rows for rows in cases if rows[0].kernel == kernel], ceilings)
    yield from benchmarked(RESULTS)
    yield ""
    yield "## Known"
    yield from prose(known(cases))
    yield ""
    yield "## What they take"
    yield from prose(COMPILED)
    yield from compiled_rows()


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    text = "\n".join(document()) + "\n"
    if check:
        return int(not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != text)
    DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
