"""What the kernels launch by themselves is what was fastest on a GPU, by the committed measurements."""

import pytest
import torch

from benchmarks.kernels import MODULES
from benchmarks.kernels.case import Sweep
from benchmarks.kernels.measured import RESULTS, Candidate, by_case, read_candidates
from benchmarks.kernels.sweep import sweeps_of
from kernels.paged_decode import default_splits, launch_config

MEASURED = read_candidates(RESULTS / "h200-sweeps.parquet")
BY_CASE = by_case(MEASURED)
WITHIN = 1.05
SPILLING = {("flash_prefill", "cap 50"): 1.15, ("mla_decode", "bf16, block size 16"): 1.08}
"""Where what is faster by more spills registers to the stack, which nothing shipped may."""


def place(sweep: Sweep) -> tuple[str, str, str, tuple[tuple[str, int], ...]]:
    case = sweep.case
    return case.kernel, case.form, case.dtype, tuple(sorted(case.shape.items()))


SWEPT = [
    pytest.param(sweep, id=f"{sweep.case.kernel} {sweep.case.form} {dict(sweep.case.shape)}")
    for module in MODULES
    for sweep in sweeps_of(module)
    if sweep.shipped is not None and place(sweep) in BY_CASE
]


def seconds(candidate: Candidate) -> float:
    assert candidate.median_s is not None
    return candidate.median_s


def test_every_measured_candidate_is_told_apart() -> None:
    keys = [(each.place, tuple(sorted(each.config.items()))) for each in MEASURED]
    assert len(set(keys)) == len(keys) > 2000


def test_most_of_the_measured_cases_are_held_against_what_is_shipped() -> None:
    kernels = {parameter.values[0].case.kernel for parameter in SWEPT}
    assert {each.kernel for each in MEASURED} - kernels <= {"gemm", "w8a8"}


@pytest.mark.parametrize("sweep", SWEPT)
def test_shipped_is_the_fastest_measured_or_nearly(sweep: Sweep) -> None:
    assert sweep.shipped is not None
    rows = BY_CASE[place(sweep)]
    shipped = [row for row in rows if dict(row.config) == sweep.shipped.arguments()]
    assert len(shipped) == 1, f"{sweep.shipped.arguments()} was not measured"
    allowed = SPILLING.get((sweep.case.kernel, sweep.case.form), WITHIN)
    assert seconds(shipped[0]) <= allowed * seconds(rows[0]), rows[0].config


@pytest.mark.parametrize(("batch", "context"), [(64, 4096), (64, 8192), (1, 16384)])
def test_splits_of_decode_attention_are_the_fastest_measured(batch: int, context: int) -> None:
    config = launch_config(torch.bfloat16, 128, 8)
    shape = {"batch": batch, "context": context, "heads": 64, "kv_heads": 8, "head_dim": 128, "block_size": 16}
    splits = default_splits(batch, 64, 8, 128, torch.bfloat16, context, config, 132)
    rows = [
        row
        for row in MEASURED
        if row.kernel == "paged_decode" and row.form.startswith("bf16") and shape.items() <= row.shape.items()
    ]
    chosen = [row for row in rows if row.shape["splits"] == splits and dict(row.config) == config.arguments()]
    assert len(chosen) == 1
    assert seconds(chosen[0]) <= WITHIN * min(seconds(row) for row in rows)
