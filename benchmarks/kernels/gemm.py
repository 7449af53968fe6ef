"""16-bit GEMMs: decode and prefill shapes of Llama 3 8B and 70B, beside the vendor's library at the same shapes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle

import torch

from benchmarks.kernels.matmul_candidates import few_rows, many_rows, medium_rows
from kernels.case import Case, Run, Sweep
from kernels.gemm import gemm
from kernels.launch import LaunchConfig
from kernels.matmul_config import matmul_config

LAYERS = ((4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 28672))
"""(n, k): 8B output projection, gate and up, down; 70B queries, keys and values, down."""
TOKENS = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
LIBRARY_TOKENS = (1, 16, 64, 256, 2048, 4096, 8192, 16384)
TOY_SHAPES = ((2, 64, 128), (40, 48, 64), (96, 96, 32))
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_CACHE_BYTES = 200_000_000


def cases(toy: bool) -> list[Case]:
    """This kernel and ``torch.matmul``."""
    if toy:
        return [make(*shape, "fp16") for shape in TOY_SHAPES for make in (gemm_case, library_case)]
    return [gemm_case(m, n, k) for n, k in LAYERS for m in TOKENS] + [
        library_case(m, n, k) for n, k in LAYERS for m in LIBRARY_TOKENS
    ]


def gemm_case(m: int, n: int, k: int, dtype: str = "bf16") -> Case:
    """``gemm`` in bf16 or fp16."""

    def prepare(device: torch.device) -> Run:
        a, weight = operands(m, n, k, device, dtype)
        return lambda: gemm(a, weight)

    return _case("gemm", m, n, k, dtype, prepare, {"dtype": dtype, "tokens": m, "n": n, "k": k})


def library_case(m: int, n: int, k: int, dtype: str = "bf16") -> Case:
    """The same by ``torch.matmul``, that is cuBLAS on a GPU. No sample: it is not this engine's."""

    def prepare(device: torch.device) -> Run:
        a, weight = operands(m, n, k, device, dtype)
        transposed = weight.T
        return lambda: torch.matmul(a, transposed)

    return _case("cublas", m, n, k, dtype, prepare, None)


def _case(
    kernel: str,
    m: int,
    n: int,
    k: int,
    dtype: str,
    prepare: Callable[[torch.device], Run],
    sample: dict[str, int | str] | None,
) -> Case:
    return Case(
        kernel=kernel,
        form="dense",
        dtype=dtype,
        shape={"m": m, "n": n, "k": k},
        prepare=prepare,
        bytes_moved=2 * (m * k + n * k + m * n),
        operations=2 * m * n * k,
        kind="gemm" if sample else None,
        sample=sample,
    )


def operands(m: int, n: int, k: int, device: torch.device, dtype: str = "bf16") -> tuple[torch.Tensor, torch.Tensor]:
    """Random activations and a random weight."""
    a, weight = (torch.randn(rows, k, device=device, dtype=TYPES[dtype]) for rows in (m, n))
    return a, weight


def sweeps() -> list[Sweep]:
    """Decode, medium and prefill shapes, each with the tiles that suit it."""
    few = [(m, n, k) for n, k in LAYERS[:3] for m in (1, 16, 64)]
    medium = [(m, n, k) for n, k in LAYERS[:2] for m in (128, 256, 512)]
    many = [(2048, 4096, 4096), (2048, 28672, 4096), (8192, 4096, 14336), (8192, 10240, 8192)]
    chosen = [(shape, few_rows(shape[0], 2)) for shape in few]
    chosen += [(shape, medium_rows(2)) for shape in medium]
    chosen += [(shape, many_rows(2)) for shape in many]
    return [_sweep(shape, candidates) for shape, candidates in chosen]


def _sweep(shape: tuple[int, int, int], candidates: Iterable[LaunchConfig]) -> Sweep:
    case = gemm_case(*shape)

    def prepare(device: torch.device) -> Callable[[LaunchConfig], Run]:
        rotation = beyond_cache(case, lambda: operands(*shape, device))

        def launch(config: LaunchConfig) -> Run:
            inputs = cycle(rotation)
            return lambda: gemm(*next(inputs), config=config)

        return launch

    return Sweep(case, list(candidates), prepare, shipped_config(case.shape))


def shipped_config(shape: Mapping[str, int]) -> LaunchConfig:
    """What the GEMM of bf16 launches by itself on sm_90."""
    return matmul_config(shape["m"], shape["n"], shape["k"], "16-bit", 90)


def beyond_cache(case: Case, make: Callable[[], tuple[torch.Tensor, ...]]) -> Sequence[tuple[torch.Tensor, ...]]:
    """As many sets of inputs as exceed any cache together."""
    return [make() for _ in range(1 + _CACHE_BYTES // case.bytes_moved)]
