"""8-bit products in every form of scales, beside the vendor's fp8 product at the same shapes."""

from collections.abc import Callable, Iterable

import torch

from benchmarks.kernels.case import Case, Run, Sweep
from benchmarks.kernels.gemm import few_rows, many_rows, medium_rows
from kernels.launch import LaunchConfig
from kernels.matmul_config import pointer_config, tma_config
from kernels.w8a8 import w8a8

LAYERS = ((4096, 4096), (28672, 4096), (4096, 14336))
PREFILL = ((2048, 4096, 4096), (8192, 8192, 8192), (8192, 28672, 8192), (16384, 4096, 14336))
TOY_SHAPES = ((2, 128, 256), (80, 128, 128))

FORMS = {
    "fp8 token x channel": ("fp8", torch.float8_e4m3fn),
    "fp8 tensor": ("fp8", torch.float8_e4m3fn),
    "fp8 block": ("fp8-block", torch.float8_e4m3fn),
    "int8 token x channel": ("int8", torch.int8),
}
"""Each form with the name of its data type among calibration samples, and torch's."""


def cases(toy: bool) -> list[Case]:
    """This kernel in each form, and ``torch._scaled_mm`` with one scale per tensor."""
    if toy:
        shapes = dict.fromkeys(FORMS, TOY_SHAPES)
        return [w8a8_case(form, *shape) for form in FORMS for shape in shapes[form]]
    spread = [(m, n, k) for n, k in LAYERS for m in (1, 16, 64, 256, 1024, 4096)]
    chosen = {
        "fp8 token x channel": [*spread, *PREFILL],
        "fp8 tensor": [(16, 28672, 4096), *PREFILL],
        "fp8 block": [*spread[::2], *PREFILL],
        "int8 token x channel": [*spread[::2], *PREFILL],
    }
    found = [w8a8_case(form, *shape) for form, shapes in chosen.items() for shape in shapes]
    return found + [library_case(*shape) for shape in ((16, 28672, 4096), *PREFILL)]


def w8a8_case(form: str, m: int, n: int, k: int) -> Case:
    """``w8a8`` with a result in bf16."""

    def prepare(device: torch.device) -> Run:
        inputs = operands(form, m, n, k, device)
        return lambda: w8a8(*inputs)

    dtype, _ = FORMS[form]
    return Case(
        kernel="w8a8",
        form=form,
        dtype=dtype,
        shape={"m": m, "n": n, "k": k},
        prepare=prepare,
        bytes_moved=m * k + n * k + 2 * m * n + _scale_bytes(form, m, n, k),
        operations=2 * m * n * k,
        kind="gemm",
        sample={"dtype": dtype, "tokens": m, "n": n, "k": k},
    )


def library_case(m: int, n: int, k: int) -> Case:
    """The fp8 product of cuBLAS with fast sums."""

    def prepare(device: torch.device) -> Run:
        a, weight, a_scale, weight_scale = operands("fp8 tensor", m, n, k, device)
        transposed = weight.T
        return lambda: torch._scaled_mm(
            a, transposed, a_scale, weight_scale, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    return Case(
        kernel="cublas",
        form="fp8 tensor",
        dtype="fp8",
        shape={"m": m, "n": n, "k": k},
        prepare=prepare,
        bytes_moved=m * k + n * k + 2 * m * n + 8,
        operations=2 * m * n * k,
    )


def operands(form: str, m: int, n: int, k: int, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Random operands and scales."""
    _, dtype = FORMS[form]
    a, weight = ((40 * torch.randn(rows, k, device=device)).clamp(-127, 127).to(dtype) for rows in (m, n))
    a_shape, weight_shape = _scale_shapes(form, m, n, k)
    return a, weight, torch.rand(a_shape, device=device), torch.rand(weight_shape, device=device)


def _scale_shapes(form: str, m: int, n: int, k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if form.endswith("tensor"):
        return (1,), (1,)
    if form.endswith("channel"):
        return (m,), (n,)
    return (m, -(-k // 128)), (-(-n // 128), -(-k // 128))


def _scale_bytes(form: str, m: int, n: int, k: int) -> int:
    return 4 * sum(torch.Size(shape).numel() for shape in _scale_shapes(form, m, n, k))


def sweeps() -> list[Sweep]:
    """Decode, medium and prefill shapes of fp8; block scales apart; int8 where its tiles may differ."""
    channel, block, whole = "fp8 token x channel", "fp8 block", "int8 token x channel"
    found = []
    for n, k in LAYERS:
        for m in (1, 16, 64):
            found.append(_sweep(channel, (m, n, k), few_rows(m, 1, promote=True)))
            found.append(_sweep(block, (m, n, k), [*_few_rows_by_block(m)]))
        for m in (128, 512):
            found.append(_sweep(channel, (m, n, k), medium_rows(1, promote=True)))
            found.append(_sweep(block, (m, n, k), [*_medium_rows_by_block(), *_many_rows_by_block()]))
    for shape in ((2048, 4096, 4096), (8192, 8192, 8192), (8192, 4096, 14336)):
        found.append(_sweep(channel, shape, [*many_rows(1), *many_rows(1, promote=True)]))
        found.append(_sweep(block, shape, _many_rows_by_block()))
    found.append(_sweep(whole, (16, 4096, 4096), few_rows(16, 1)))
    found.append(_sweep(whole, (8192, 8192, 8192), many_rows(1)))
    return found


def _sweep(form: str, shape: tuple[int, int, int], candidates: Iterable[LaunchConfig]) -> Sweep:
    def prepare(device: torch.device) -> Callable[[LaunchConfig], Run]:
        inputs = operands(form, *shape, device)
        return lambda config: lambda: w8a8(*inputs, config=config)

    return Sweep(w8a8_case(form, *shape), list(candidates), prepare)


def _few_rows_by_block(m: int) -> Iterable[LaunchConfig]:
    block_m = max(16, 1 << (m - 1).bit_length())
    for block_n, num_warps, num_stages in ((16, 4, 6), (32, 4, 6), (32, 2, 6), (64, 4, 6), (128, 4, 5)):
        for splits in (1, 2, 4, 8):
            yield pointer_config(block_m, block_n, 128, splits, num_warps=num_warps, num_stages=num_stages)


def _medium_rows_by_block() -> Iterable[LaunchConfig]:
    for block_m, block_n, num_warps, num_stages in ((128, 64, 4, 5), (128, 64, 8, 5), (64, 64, 4, 6)):
        for splits in (1, 2, 4):
            yield pointer_config(block_m, block_n, 128, splits, num_warps=num_warps, num_stages=num_stages)


def _many_rows_by_block() -> Iterable[LaunchConfig]:
    for block_m, block_n, store_n, num_warps, num_stages in (
        (128, 128, 128, 8, 4),
        (128, 128, 128, 8, 5),
        (128, 128, 64, 8, 6),
        (128, 64, 64, 8, 6),
        (64, 128, 128, 4, 6),
    ):
        for group_m in (4, 8, 16):
            yield tma_config(
                block_m, block_n, 128, store_n, num_warps=num_warps, num_stages=num_stages, group_m=group_m
            )
