"""8-bit GEMMs in every form of scales, beside the vendor's fp8 GEMM at the same shapes."""

from collections.abc import Callable, Iterable, Mapping
from itertools import cycle

import torch

from benchmarks.kernels.gemm import beyond_cache
from benchmarks.kernels.matmul_candidates import (
    few_rows,
    few_rows_by_block,
    many_rows,
    many_rows_by_block,
    medium_rows,
)
from kernels.case import Case, Run, Sweep
from kernels.launch import LaunchConfig
from kernels.matmul_config import Items, matmul_config
from kernels.w8a8 import SCALE_BLOCK, w8a8

LAYERS = ((4096, 4096), (28672, 4096), (4096, 14336))
PREFILL = ((2048, 4096, 4096), (2048, 28672, 4096), (8192, 10240, 8192), (8192, 8192, 28672), (16384, 4096, 14336))
"""Among the shapes that ``gemm`` is timed at, since ratios are taken to it."""
TOY_SHAPES = ((2, 128, 256), (80, 128, 128))
FORMS = ("token-channel", "tensor", "block")
ITEMS: dict[tuple[str, bool], Items] = {
    ("fp8", False): "fp8",
    ("fp8", True): "fp8 by block",
    ("int8", False): "int8",
    ("int8", True): "int8 by block",
}
TYPES = {"fp8": torch.float8_e4m3fn, "int8": torch.int8}


def cases(toy: bool) -> list[Case]:
    """This kernel in each form, and ``torch._scaled_mm`` with one scale per tensor."""
    if toy:
        return [w8a8_case(form, dtype, *shape) for form in FORMS for dtype in TYPES for shape in TOY_SHAPES]
    spread = [(m, n, k) for n, k in LAYERS for m in (1, 16, 64, 256, 1024, 4096)]
    chosen = {
        ("token-channel", "fp8"): [*spread, *PREFILL],
        ("tensor", "fp8"): [(16, 28672, 4096), *PREFILL],
        ("block", "fp8"): [*spread[::2], *PREFILL],
        ("token-channel", "int8"): [*spread[1::2], *PREFILL],
    }
    found = [w8a8_case(*form, *shape) for form, shapes in chosen.items() for shape in shapes]
    return found + [library_case(*shape) for shape in ((16, 28672, 4096), *PREFILL)]


def w8a8_case(form: str, dtype: str, m: int, n: int, k: int) -> Case:
    """``w8a8`` with a result in bf16."""

    def prepare(device: torch.device) -> Run:
        inputs = operands(form, dtype, m, n, k, device)
        return lambda: w8a8(*inputs)

    known = {"fp8 token-channel": "fp8", "fp8 block": "fp8-block", "int8 token-channel": "int8"}
    sample_dtype = known.get(f"{dtype} {form}")
    return Case(
        kernel="w8a8",
        form=form,
        dtype=dtype,
        shape={"m": m, "n": n, "k": k},
        prepare=prepare,
        bytes_moved=m * k + n * k + 2 * m * n + _scale_bytes(form, m, n, k),
        operations=2 * m * n * k,
        kind="gemm" if sample_dtype else None,
        sample={"dtype": sample_dtype, "tokens": m, "n": n, "k": k} if sample_dtype else None,
    )


def library_case(m: int, n: int, k: int) -> Case:
    """The fp8 GEMM of cuBLAS with fast sums."""

    def prepare(device: torch.device) -> Run:
        a, weight, *scales = operands("tensor", "fp8", m, n, k, device)
        transposed = weight.T
        return lambda: torch._scaled_mm(a, transposed, *scales, out_dtype=torch.bfloat16, use_fast_accum=True)

    return Case(
        kernel="cublas",
        form="tensor",
        dtype="fp8",
        shape={"m": m, "n": n, "k": k},
        prepare=prepare,
        bytes_moved=m * k + n * k + 2 * m * n + _scale_bytes("tensor", m, n, k),
        operations=2 * m * n * k,
    )


def operands(form: str, dtype: str, m: int, n: int, k: int, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Random activations, weight and scales."""
    a, weight = (torch.randn(rows, k, device=device).mul_(40).clamp_(-127, 127).to(TYPES[dtype]) for rows in (m, n))
    a_shape, weight_shape = _scale_shapes(form, m, n, k)
    return a, weight, torch.rand(a_shape, device=device), torch.rand(weight_shape, device=device)


def _scale_shapes(form: str, m: int, n: int, k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    blocks = -(-k // SCALE_BLOCK)
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "tensor": ((1,), (1,)),
        "token-channel": ((m,), (n,)),
        "block": ((m, blocks), (-(-n // SCALE_BLOCK), blocks)),
    }
    return shapes[form]


def _scale_bytes(form: str, m: int, n: int, k: int) -> int:
    return 4 * sum(torch.Size(shape).numel() for shape in _scale_shapes(form, m, n, k))


def sweeps() -> list[Sweep]:
    """Decode, medium and prefill shapes of fp8 by token and channel and by block; int8 where it may differ."""
    found = []
    for n, k in LAYERS[:2]:
        for m in (1, 16, 64):
            found.append(_sweep("token-channel", "fp8", (m, n, k), few_rows(m, 1, promote=True)))
        found.append(_sweep("block", "fp8", (16, n, k), few_rows_by_block(16)))
        found.append(_sweep("block", "fp8", (64, n, k), few_rows_by_block(64)))
    for m in (128, 512):
        found.append(_sweep("token-channel", "fp8", (m, 4096, 4096), medium_rows(1, promote=True)))
        found.append(_sweep("block", "fp8", (m, 4096, 4096), medium_rows(1, block_scales=True)))
    for shape in ((2048, 4096, 4096), (2048, 28672, 4096), (8192, 10240, 8192)):
        found.append(_sweep("token-channel", "fp8", shape, [*many_rows(1), *many_rows(1, promote=True)]))
        found.append(_sweep("block", "fp8", shape, many_rows_by_block()))
    found.append(_sweep("token-channel", "int8", (16, 28672, 4096), few_rows(16, 1)))
    found.append(_sweep("token-channel", "int8", (8192, 10240, 8192), many_rows(1)))
    return found


def _sweep(form: str, dtype: str, shape: tuple[int, int, int], candidates: Iterable[LaunchConfig]) -> Sweep:
    case = w8a8_case(form, dtype, *shape)

    def prepare(device: torch.device) -> Callable[[LaunchConfig], Run]:
        rotation = beyond_cache(case, lambda: operands(form, dtype, *shape, device))

        def launch(config: LaunchConfig) -> Run:
            inputs = cycle(rotation)
            return lambda: w8a8(*next(inputs), config=config)

        return launch

    return Sweep(case, list(candidates), prepare, shipped_config(form, dtype, case.shape))


def shipped_config(form: str, dtype: str, shape: Mapping[str, int]) -> LaunchConfig:
    """What the GEMM launches by itself on sm_90."""
    items = ITEMS[dtype, form == "block"]
    return matmul_config(shape["m"], shape["n"], shape["k"], items, 90)
