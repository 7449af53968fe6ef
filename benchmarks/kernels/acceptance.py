"""What the kernels should reach, as fractions of the ceilings of the same run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.kernels.case import Case
from benchmarks.kernels.machine import Machine
from benchmarks.kernels.results import Result

Chosen = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Target:
    """Results of one kernel and form held against a ceiling of the machine, or against another kernel at equal shapes.

    ``against`` is ``"copy"``, ``"matmul"``, or kernel, form and dtype of the other; ``least`` the ratio wanted.
    """

    title: str
    kernel: str
    forms: tuple[str, ...]
    dtype: str
    shapes: Chosen
    against: str | tuple[str, str, str]
    least: float


def _long_prompts(shape: Mapping[str, Any]) -> bool:
    return shape.get("head_dim") == 128 and 8192 <= shape.get("tokens", 0) <= 16384


def _decode_batches(shape: Mapping[str, Any]) -> bool:
    return (
        shape.get("batch") == 64
        and 4096 <= shape.get("context", 0) <= 16384
        and (shape.get("heads") == 8 * shape.get("kv_heads", 0) and not shape.get("splits"))
    )


def _many_rows(shape: Mapping[str, Any]) -> bool:
    return shape.get("m", 0) >= 2048


def _few_rows(shape: Mapping[str, Any]) -> bool:
    return 0 < shape.get("m", 0) <= 16


TARGETS = (
    Target("flash prefill, head dim 128, causal, 8k-16k: share of matmul peak", "flash_prefill", ("causal",), "bf16",
           _long_prompts, "matmul", 0.65),
    Target("paged decode, batch 64, context 4k-16k, GQA 8: share of copy bandwidth", "paged_decode",
           ("bf16 cache, block size 16", "bf16 cache, block size 64"), "bf16",
           _decode_batches, "copy", 0.85),
    Target("bf16 GEMM, M >= 2048: share of cuBLAS", "gemm", ("dense",), "bf16",
           _many_rows, ("cublas", "dense", "bf16"), 0.85),
    Target("fp8 GEMM, M >= 2048: times the bf16 GEMM", "w8a8", ("tensor", "token-channel"), "fp8",
           _many_rows, ("gemm", "dense", "bf16"), 1.5),
    Target("w4a16, M <= 16: times cuBLAS in bf16", "w4a16", ("group-128",), "bf16",
           _few_rows, ("cublas", "dense", "bf16"), 2.5),
)  # fmt: skip


def belongs(target: Target, case: Case) -> bool:
    """Whether the target says something of this case."""
    return (
        case.kernel == target.kernel
        and case.form in target.forms
        and case.dtype == target.dtype
        and target.shapes(case.shape)
    )


def ratios(machine: Machine, results: list[Result]) -> list[str]:
    """One line per target and case that belongs to it, as Markdown table rows under a head."""
    lines = ["| what | shape | ratio | wanted |", "|---|---|---:|---:|"]
    times = {_place(result): result.times.median_s for result in results}
    for target in TARGETS:
        for result in results:
            case = result.case
            against = (*target.against, tuple(sorted(case.shape.items())))
            if not belongs(target, case) or (not isinstance(target.against, str) and against not in times):
                continue
            ratio = _ratio(target, machine, result, times)
            shape = " ".join(f"{name}={value}" for name, value in case.shape.items())
            lines.append(f"| {target.title} ({case.form}) | {shape} | {ratio:.2f} | {target.least} |")
    return lines


def _place(result: Result) -> tuple[str, str, str, tuple[tuple[str, Any], ...]]:
    case = result.case
    return case.kernel, case.form, case.dtype, tuple(sorted(case.shape.items()))


def _ratio(target: Target, machine: Machine, result: Result, times: Mapping[Any, float]) -> float:
    if target.against == "copy":
        return result.bytes_per_s / machine.copy_bytes_per_s
    if target.against == "matmul":
        return result.operations_per_s / machine.matmul_bf16_per_s
    return times[(*target.against, tuple(sorted(result.case.shape.items())))] / result.times.median_s
