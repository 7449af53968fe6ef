"""What the kernels should reach, as fractions of the ceilings of the same run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.kernels.machine import Machine
from benchmarks.kernels.results import Result
from kernels.case import Case

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


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one case reached of a target."""

    title: str
    form: str
    shape: Mapping[str, int]
    ratio: float
    wanted: float

    @property
    def reached(self) -> bool:
        """Whether it is what is wanted, or more."""
        return self.ratio >= self.wanted


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


def _every(shape: Mapping[str, Any]) -> bool:
    return True


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
    Target("decodes and a chunk in one launch: times two launches", "mixed_attention", ("one launch",), "bf16",
           _every, ("mixed_attention", "two launches", "bf16"), 1.0),
)  # fmt: skip


def belongs(target: Target, case: Case) -> bool:
    """Whether the target says something of this case."""
    return (
        case.kernel == target.kernel
        and case.form in target.forms
        and case.dtype == target.dtype
        and target.shapes(case.shape)
    )


def first_those_that_count(cases: Sequence[Case]) -> list[Case]:
    """Each case once: those that targets speak of and what they are held against, then the others, in order."""
    once: dict[Any, Case] = {}
    for case in cases:
        once.setdefault(case.place, case)
    counts = set()
    for place, case in once.items():
        for target in TARGETS:
            if belongs(target, case):
                counts.add(place)
                if not isinstance(target.against, str):
                    counts.add((*target.against, place[3]))
    return sorted(once.values(), key=lambda case: case.place not in counts)


def ratios(machine: Machine, results: Sequence[Result]) -> Iterator[Ratio]:
    """What each case reached of the targets that speak of it; none where what it is held against is missing."""
    times = {result.case.place: result.times.median_s for result in results}
    for target in TARGETS:
        for result in results:
            case = result.case
            if not belongs(target, case):
                continue
            if target.against == "copy":
                ratio = result.bytes_per_s / machine.copy_bytes_per_s
            elif target.against == "matmul":
                ratio = result.operations_per_s / machine.matmul_bf16_per_s
            elif (other := times.get((*target.against, case.place[3]))) is not None:
                ratio = other / result.times.median_s
            else:
                continue
            yield Ratio(target.title, case.form, case.shape, ratio, target.least)


def told(found: Sequence[Ratio]) -> str:
    """The ratios as a Markdown table."""
    lines = ["| what | shape | ratio | wanted | reached |", "|---|---|---:|---:|---|"]
    for each in found:
        shape = " ".join(f"{name}={value}" for name, value in each.shape.items())
        reached = "yes" if each.reached else "no"
        lines.append(f"| {each.title} ({each.form}) | {shape} | {each.ratio:.2f} | {each.wanted} | {reached} |")
    return "\n".join(lines)
