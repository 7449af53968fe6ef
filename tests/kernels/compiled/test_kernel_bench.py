"""The benchmark script without a GPU: its ratios, what a failure costs, its end in time, and what fits make of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from benchmarks.kernels import MODULES, cases_of
from benchmarks.kernels.acceptance import TARGETS, belongs, first_those_that_count, ratios, told
from benchmarks.kernels.machine import ClockReader, Machine
from benchmarks.kernels.one_by_one import Deadline, timed
from benchmarks.kernels.results import Missing, Result, write_samples, write_summary
from benchmarks.kernels.timing import Times
from kernels.case import Case
from servetwin.app import app
from simcore.core.errors import FileError, UnknownNameError
from simcore.cost.calibrated.profile import KernelProfile

MACHINE = Machine("a GPU", "1.2", "13.0", "2.0", "3.0", "3.11", copy_bytes_per_s=4e12, matmul_bf16_per_s=800e12)
CASES = [case for module in MODULES for case in cases_of(module)]


def case(kernel: str, form: str, dtype: str, moved: int = 0, operations: int = 0, **shape: int) -> Case:
    return Case(kernel, form, dtype, shape, lambda device: lambda: None, moved, operations)


def result(of: Case, seconds: float) -> Result:
    return Result(of, Times(seconds, 0.9 * seconds, 1.1 * seconds, 25, 4), 1980)


PREFILL = case(
    "flash_prefill", "causal", "bf16", 0, 560 * 10**9, head_dim=128, tokens=8192, batch=1, heads=32, kv_heads=8
)
DECODE = case(
    "paged_decode", "bf16 cache, block size 16", "bf16", 36 * 10**8, 0, batch=64, context=8192, heads=64, kv_heads=8
)
GEMM, LIBRARY = (case(kernel, "dense", "bf16", m=4096, n=4096, k=4096) for kernel in ("gemm", "cublas"))
FP8 = case("w8a8", "tensor", "fp8", m=4096, n=4096, k=4096)
INT4, INT4_LIBRARY = case("w4a16", "group-128", "bf16", m=16, n=8, k=9), case("cublas", "dense", "bf16", m=16, n=8, k=9)
ONE, TWO = (case("mixed_attention", form, "bf16", tokens=5) for form in ("one launch", "two launches"))
OTHERS = [
    case("flash_prefill", "causal", "bf16", 0, 1, head_dim=128, tokens=4096),
    case("flash_prefill", "cap 50", "bf16", 0, 1, head_dim=128, tokens=8192),
    case("paged_decode", "fp8 cache, block size 16", "bf16", 1, 0, batch=64, context=8192, heads=64, kv_heads=8),
    case("paged_decode", "bf16 cache, block size 16", "bf16", 1, 0, batch=64, context=8192, heads=8, kv_heads=8),
    case("gemm", "dense", "bf16", m=1024, n=4096, k=4096),
    case("gemm", "dense", "bf16", m=2048, n=4, k=4),  # no library's GEMM at this shape
    case("w8a8", "block", "fp8", m=4096, n=4096, k=4096),
    case("w4a16", "group-128", "bf16", m=17, n=8, k=9),
]
TIMED = [
    *(result(each, 1.0) for each in OTHERS),
    result(PREFILL, 1e-3),  # 560 of 800 TFLOP/s
    result(DECODE, 1e-3),  # 3.6 of 4 TB/s
    result(GEMM, 10e-6),
    result(LIBRARY, 9e-6),
    result(FP8, 8e-6),
    result(INT4, 2e-6),
    result(INT4_LIBRARY, 6e-6),
    result(ONE, 5e-6),
    result(TWO, 4e-6),
]


def test_ratios_are_those_worked_out_by_hand() -> None:
    found = {each.title: each for each in ratios(MACHINE, TIMED)}
    assert len(found) == len(list(ratios(MACHINE, TIMED))) == len(TARGETS)
    assert [round(found[target.title].ratio, 6) for target in TARGETS] == [0.7, 0.9, 0.9, 1.25, 3.0, 0.8]
    assert [found[target.title].reached for target in TARGETS] == [True, True, True, False, True, False]
    table = told(list(found.values()))
    assert "| fp8 GEMM, M >= 2048: times the bf16 GEMM (tensor) | m=4096 n=4096 k=4096 | 1.25 | 1.5 | no |" in table


def test_what_targets_speak_of_is_timed_first_and_all_once() -> None:
    ordered = first_those_that_count([*OTHERS, ONE, PREFILL, TWO, PREFILL, LIBRARY, GEMM])
    # A GEMM that is to be held against the library's counts, with or without it.
    assert ordered == [OTHERS[5], ONE, PREFILL, TWO, LIBRARY, GEMM, *OTHERS[:5], *OTHERS[6:]]
    every = first_those_that_count(CASES)
    assert {each.place for each in every} == {each.place for each in CASES}
    assert len({each.place for each in every}) == len(every)
    wanted = sum(any(belongs(target, each) for target in TARGETS) for each in every)
    assert {each.kernel for each in every[:wanted]} <= {target.kernel for target in TARGETS} | {"cublas"}


def times_of(failing: Case, advance: Callable[[], None]) -> Callable[[Case], Times]:
    def time_case(of: Case) -> Times:
        advance()
        if of is failing:
            raise torch.cuda.OutOfMemoryError("tried to allocate\n3 GiB")
        return result(of, 1e-6).times

    return time_case


def test_a_failure_costs_its_own_case_and_the_deadline_the_last_ones() -> None:
    now = [100.0]

    def advance() -> None:
        now[0] += 10

    deadline = Deadline(35, clock=lambda: now[0])
    cases = [GEMM, FP8, PREFILL, DECODE, INT4]
    found = list(timed(cases, times_of(FP8, advance), lambda: 1755, deadline))
    assert [each.case for each in found] == cases
    assert [isinstance(each, Result) for each in found] == [True, False, True, True, False]
    assert [each.clock_mhz for each in found if isinstance(each, Result)] == [1755] * 3
    reasons = [each.reason for each in found if isinstance(each, Missing)]
    assert reasons == ["OutOfMemoryError: tried to allocate\n3 GiB", "not timed: there was no time left"]


def test_the_summary_says_where_what_and_what_not(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    found = list(ratios(MACHINE, TIMED))
    write_summary(MACHINE, TIMED, [Missing(FP8, "ValueError: no")], found, path)
    summary = json.loads(path.read_text(encoding="utf-8"))
    assert summary["machine"]["driver"] == "1.2"
    assert len(summary["results"]) == len(TIMED)
    prefill = next(row for row in summary["results"] if row["shape"].get("tokens") == 8192 and row["form"] == "causal")
    facts = {"kernel": "flash_prefill", "dtype": "bf16", "median_s": 1e-3, "repeats": 25, "clock_mhz": 1980}
    assert facts.items() <= prefill.items()
    assert summary["missing"][0]["reason"] == "ValueError: no"
    assert [row["ratio"] for row in summary["ratios"]] == [each.ratio for each in found]
    assert list(tmp_path.iterdir()) == [path]


def test_the_clock_is_the_last_that_was_told() -> None:
    with ClockReader(["sh", "-c", "echo 1980; echo '[N/A]'; echo 1755; exec sleep 5"]) as clock:
        deadline = Deadline(4)
        while clock.mhz() != 1755 and deadline.left_s():
            pass
        assert clock.mhz() == 1755


def seconds_of(of: Case) -> float:
    """What a machine of flat rates would take."""
    return 4e-6 + max(of.bytes_moved / 4e12, of.operations / 600e12)


@pytest.fixture
def samples(tmp_path: Path) -> list[Path]:
    return write_samples("h200-sxm", "0.1", [result(each, seconds_of(each)) for each in CASES], tmp_path)


def test_samples_are_accepted_by_calibration_and_price_what_was_measured(samples: list[Path], tmp_path: Path) -> None:
    assert {path.stem for path in samples} == {
        "context_attention",
        "gemm",
        "generation_attention",
        "mla_generation",
        "moe",
    }
    out = tmp_path / "profile"
    ran = CliRunner().invoke(app, ["calibrate", "fit", *map(str, samples), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "nan" not in ran.output
    profile = KernelProfile(out)
    assert profile.accelerator == "h200-sxm"
    gemm = profile.gemm("bf16", 28672, 4096)
    prefill = profile.context_attention("bf16", 32, 8, 128)
    decode = profile.generation_attention("bf16", 64, 8, 128)
    assert gemm is not None
    assert prefill is not None
    assert decode is not None
    priced = [
        (gemm.seconds(4096), {"kernel": "gemm", "m": 4096, "n": 28672, "k": 4096}),
        (prefill.seconds(16384), {"kernel": "flash_prefill", "tokens": 16384, "heads": 32, "kv_heads": 8, "prefix": 0}),
        (
            prefill.seconds(512, prefix=8192),
            {"kernel": "flash_prefill", "tokens": 512, "heads": 32, "kv_heads": 8, "prefix": 8192},
        ),
        (decode.seconds(64, 64 * 8192), {"kernel": "paged_decode", "batch": 64, "context": 8192, "heads": 64}),
    ]
    for price_s, facts in priced:
        measured = next(each for each in CASES if facts.items() <= {"kernel": each.kernel, **each.shape}.items())
        assert price_s == pytest.approx(seconds_of(measured), rel=0.05), facts


@pytest.mark.parametrize(("kind", "column"), [("generation_attention", "kv_dtype"), ("gemm", "dtype")])
def test_a_data_type_that_no_fit_knows_is_named(samples: list[Path], tmp_path: Path, kind: str, column: str) -> None:
    file = next(path for path in samples if path.stem == kind)
    table = pq.read_table(file)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, pa.array(["fp7"] * len(table))), file)
    ran = CliRunner().invoke(app, ["calibrate", "fit", str(file), "--out", str(tmp_path / "profile")])
    assert isinstance(ran.exception, UnknownNameError)
    assert f"{column} is 'fp7', expected one of " in str(ran.exception)


def test_samples_that_are_too_few_are_named(samples: list[Path], tmp_path: Path) -> None:
    file = next(path for path in samples if path.stem == "moe")
    pq.write_table(pq.read_table(file).slice(0, 1), file)
    ran = CliRunner().invoke(app, ["calibrate", "fit", str(file), "--out", str(tmp_path / "profile")])
    assert isinstance(ran.exception, FileError)
    assert "1 samples of moe are too few to check a fit by" in str(ran.exception)
