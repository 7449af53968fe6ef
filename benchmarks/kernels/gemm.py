"""16-bit products: decode and prefill shapes of Llama 3 8B and 70B, beside the vendor's library at the same shapes."""

from collections.abc import Callable, Iterator

import torch

from benchmarks.kernels.case import Case, Run, Sweep
from kernels.gemm import gemm
from kernels.launch import LaunchConfig
from kernels.matmul_config import pointer_config, tma_config

LAYERS = ((4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 28672))
"""(n, k): 8B output projection, gate and up, down; 70B queries, keys and values, down."""
TOKENS = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
LIBRARY_TOKENS = (1, 16, 64, 256, 1024, 2048, 4096, 8192, 16384)
TOY_SHAPES = ((2, 64, 128), (40, 48, 64), (96, 96, 32))


def cases(toy: bool) -> list[Case]:
    """This kernel and ``torch.matmul``."""
    if toy:
        return [make(*shape) for shape in TOY_SHAPES for make in (gemm_case, library_case)]
    return [gemm_case(m, n, k) for n, k in LAYERS for m in TOKENS] + [
        library_case(m, n, k) for n, k in LAYERS for m in LIBRARY_TOKENS
    ]


def gemm_case(m: int, n: int, k: int) -> Case:
    """``gemm`` in bf16."""

    def prepare(device: torch.device) -> Run:
        a, weight = operands(m, n, k, device)
        return lambda: gemm(a, weight)

    return _case("gemm", m, n, k, prepare)


def library_case(m: int, n: int, k: int) -> Case:
    """The same product by ``torch.matmul``, that is cuBLAS on a GPU."""

    def prepare(device: torch.device) -> Run:
        a, weight = operands(m, n, k, device)
        transposed = weight.T
        return lambda: torch.matmul(a, transposed)

    return _case("cublas", m, n, k, prepare)


def _case(kernel: str, m: int, n: int, k: int, prepare: Callable[[torch.device], Run]) -> Case:
    return Case(
        kernel=kernel,
        form="bf16",
        dtype="bf16",
        shape={"m": m, "n": n, "k": k},
        prepare=prepare,
        bytes_moved=2 * (m * k + n * k + m * n),
        operations=2 * m * n * k,
        kind="gemm",
        sample={"dtype": "bf16", "tokens": m, "n": n, "k": k},
    )


def operands(m: int, n: int, k: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Random activations and a weight in bf16."""
    return tuple(torch.randn(rows, k, device=device, dtype=torch.bfloat16) for rows in (m, n))


def sweeps() -> list[Sweep]:
    """Decode, medium and prefill shapes, each with the tiles that suit it."""
    few = [(m, *layer) for layer in ((4096, 4096), (28672, 4096), (4096, 14336)) for m in (1, 16, 32, 64)]
    medium = [(m, *layer) for layer in ((4096, 4096), (28672, 4096), (4096, 14336)) for m in (128, 256, 512, 1024)]
    many = [(2048, 4096, 4096), (2048, 28672, 4096), (8192, 4096, 14336), (8192, 8192, 8192), (16384, 28672, 8192)]
    return [
        *(_sweep(shape, few_rows(shape[0], 2)) for shape in few),
        *(_sweep(shape, medium_rows(2)) for shape in medium),
        *(_sweep(shape, many_rows(2)) for shape in many),
    ]


def _sweep(shape: tuple[int, int, int], candidates: Iterator[LaunchConfig]) -> Sweep:
    def prepare(device: torch.device) -> Callable[[LaunchConfig], Run]:
        a, weight = operands(*shape, device)
        return lambda config: lambda: gemm(a, weight, config=config)

    return Sweep(gemm_case(*shape), list(candidates), prepare)


def few_rows(m: int, item_bytes: int, promote: bool = False) -> Iterator[LaunchConfig]:
    """Candidates for up to 64 rows, for items of 1 or 2 bytes."""
    block_m = max(16, 1 << (m - 1).bit_length())
    for block_n, row_bytes, num_warps, num_stages in (
        (16, 1024, 4, 3),
        (16, 512, 4, 5),
        (16, 1024, 2, 3),
        (32, 512, 4, 4),
        (32, 512, 2, 5),
        (32, 256, 4, 6),
        (64, 256, 4, 5),
        (64, 512, 4, 3),
        (128, 256, 4, 4),
        (128, 128, 4, 6),
    ):
        for splits in (1, 2, 4, 8):
            if block_n * 8 < splits * 16 or block_m * row_bytes * num_stages > 128 * 1024:
                continue
            block_k = row_bytes // item_bytes
            yield pointer_config(
                block_m, block_n, block_k, splits, num_warps=num_warps, num_stages=num_stages, promote=promote
            )


def medium_rows(item_bytes: int, promote: bool = False) -> Iterator[LaunchConfig]:
    """Candidates between decode and prefill."""
    block_k = 128 // item_bytes
    for block_m, block_n, num_warps, num_stages in (
        (128, 64, 4, 5),
        (128, 128, 8, 4),
        (256, 64, 8, 4),
        (64, 128, 8, 4),
    ):
        for splits in (1, 2, 4, 8):
            yield pointer_config(
                block_m, block_n, block_k, splits, num_warps=num_warps, num_stages=num_stages, promote=promote
            )
    for block_m, block_n, num_warps, num_stages in ((64, 128, 4, 6), (64, 256, 4, 4), (128, 64, 8, 6)):
        yield tma_config(
            block_m, block_n, block_k, store_n=64, num_warps=num_warps, num_stages=num_stages, promote=promote
        )
    yield from many_rows(item_bytes, promote)


def many_rows(item_bytes: int, promote: bool = False) -> Iterator[LaunchConfig]:
    """Candidates for prefill, by tensor descriptors."""
    for block_m, block_n, row_bytes, store_n, num_stages in (
        (128, 256, 128, 128, 4),
        (128, 256, 128, 64, 4),
        (128, 256, 128, 256, 3),
        (128, 256, 128, 128, 3),
        (256, 128, 128, 64, 4),
        (256, 128, 128, 128, 3),
        (128, 128, 128, 128, 4),
        (128, 128, 128, 128, 6),
        (128, 128, 128, 64, 5),
        (128, 128, 256, 128, 3),
    ):
        if promote and block_m * block_n > 128 * 128:
            continue
        for group_m in (4, 8, 16):
            yield tma_config(
                block_m,
                block_n,
                row_bytes // item_bytes,
                store_n,
                num_warps=8,
                num_stages=num_stages,
                group_m=group_m,
                promote=promote,
            )
