"""Four-bit weights: decoding at large shapes, where weights are all that is read, and prefill."""

from collections.abc import Callable
from functools import partial
from itertools import cycle, product

import torch

from kernels.case import Case, Run, Sweep
from kernels.int4_layouts import BLOCK_K, Int4Weights
from kernels.launch import LaunchConfig
from kernels.w4a16 import launch_config, w4a16

_ACCEPTANCE = ((8192, 28672), (4096, 14336), (8192, 8192))
_SPREAD = ((2048, 2048), (4096, 4096), (4096, 6144), (14336, 4096), (28672, 8192))
_CACHE_BYTES = 200_000_000
_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def random_weights(k: int, n: int, group_size: int, device: torch.device) -> Int4Weights:
    """Any words are weights; scales are near 0.01, zero points 0 to 15."""
    blocks = -(-k // BLOCK_K)
    words = torch.randint(-(2**31), 2**31 - 1, (blocks, n, 16), dtype=torch.int32, device=device)
    groups = blocks * BLOCK_K // group_size
    scales = (torch.rand(groups, n, device=device) * 0.01 + 0.005).half().view(torch.int16).int()
    zeros = torch.randint(0, 16, (groups, n), dtype=torch.int32, device=device)
    arrivals = torch.zeros(n, dtype=torch.int32, device=device)
    return Int4Weights(words, zeros << 16 | scales, arrivals, group_size, k)


def _inputs(
    device: torch.device, kind: str, m: int, k: int, n: int, group_size: int
) -> tuple[torch.Tensor, Int4Weights]:
    return torch.randn(m, k, device=device).to(_TYPES[kind]), random_weights(k, n, group_size, device)


def _prepare(kind: str, m: int, k: int, n: int, group_size: int, device: torch.device) -> Run:
    a, weights = _inputs(device, kind, m, k, n, group_size)
    return lambda: w4a16(a, weights)


def _prepare_sweep(
    kind: str, m: int, k: int, n: int, group_size: int, device: torch.device
) -> Callable[[LaunchConfig], Run]:
    """Calls rotate among weights that together exceed any cache, from the first on for each configuration."""
    a = torch.randn(m, k, device=device).to(_TYPES[kind])
    rotation = [random_weights(k, n, group_size, device) for _ in range(1 + 2 * _CACHE_BYTES // (k * n))]

    def launch(config: LaunchConfig) -> Run:
        weights = cycle(rotation)
        return lambda: w4a16(a, next(weights), config=config)

    return launch


def _matmul(m: int, k: int, n: int, device: torch.device) -> Run:
    a = torch.randn(m, k, device=device).bfloat16()
    b = torch.randn(n, k, device=device).bfloat16().T
    return lambda: a @ b


def _cublas_case(m: int, k: int, n: int) -> Case:
    """The GEMM in bf16 that four-bit weights are to save."""
    bytes_moved = 2 * (k * n + m * (k + n))
    return Case(
        "cublas", "dense", "bf16", {"m": m, "n": n, "k": k}, partial(_matmul, m, k, n), bytes_moved, 2 * m * n * k
    )


def _case(m: int, k: int, n: int, group_size: int = 128, kind: str = "bf16") -> Case:
    return Case(
        kernel="w4a16",
        form=f"group-{group_size}",
        dtype=kind,
        shape={"m": m, "n": n, "k": k},
        prepare=partial(_prepare, kind, m, k, n, group_size),
        bytes_moved=k * n // 2 + 4 * n * k // group_size + 2 * m * (k + n),
        operations=2 * m * n * k,
        kind="gemm" if group_size == 128 and kind == "bf16" else None,
        sample={"dtype": "int4", "tokens": m, "n": n, "k": k} if group_size == 128 and kind == "bf16" else None,
    )


def cases(toy: bool) -> list[Case]:
    """The shapes that are timed."""
    if toy:
        return [_case(m, 256, 128, group_size, "fp16") for m, group_size in ((1, 128), (5, 64), (33, 32))]
    shapes = [(m, k, n) for k, n in _ACCEPTANCE for m in (1, 16, 32, 64, 256, 4096)]
    shapes += [(m, k, n) for k, n in _SPREAD for m in (1, 16, 64, 512)]
    found = [_case(*shape) for shape in shapes]
    found += [_cublas_case(*shape) for shape in shapes if shape[0] <= 16]
    other_forms = ((64, "bf16"), (32, "bf16"), (128, "fp16"))
    return found + [_case(16, 8192, 28672, group_size, kind) for group_size, kind in other_forms]


def _candidate(
    block_m: int,
    block_n: int,
    programs_per_processor: int,
    num_warps: int,
    num_stages: int,
    max_registers: int | None = None,
    parts: int = 1,
    steps: int = 1,
    weights_first: bool = True,
) -> LaunchConfig:
    tiles = {
        "block_m": block_m,
        "block_n": block_n,
        "programs_per_processor": programs_per_processor,
        "weights_first": weights_first,
        "interleaved": not weights_first,
        "steps": steps,
        "parts": parts,
    }
    return LaunchConfig(tiles, num_warps, num_stages, max_registers)


def _decode_candidates() -> list[LaunchConfig]:
    """Four programs a multiprocessor of 128 registers a thread, three of 168, or two that halve what ``a`` costs.

    As many programs as are resident end together; more of them hide each other's start.
    """
    four = [_candidate(16, 128, programs, 4, stages, 128, 2) for programs, stages in product((3, 4, 8), (3, 4, 5))]
    three = [_candidate(16, 128, programs, 4, stages, 168) for programs, stages in ((3, 4), (3, 5), (3, 6), (6, 4))]
    wide = [_candidate(16, 256, programs, 8, stages, 128, 2) for programs, stages in ((2, 3), (2, 4), (2, 5), (4, 4))]
    long_steps = [_candidate(16, 128, 2, 4, 4, 168, 2, 2), _candidate(16, 128, 3, 4, 3, 168, 2, 2)]
    # The older tensor-core instruction, whose rate at 16 tokens may be the better one.
    tokens_first = [_candidate(16, 128, 4, 4, stages, 128, 2, 1, False) for stages in (4, 5)]
    return four + three + wide + long_steps + tokens_first


def _prefill_candidates() -> list[LaunchConfig]:
    return [
        _candidate(block_m, block_n, 0, num_warps, num_stages)
        for (block_m, block_n, num_warps), num_stages in product(
            ((64, 128, 8), (64, 128, 4), (64, 256, 8), (128, 128, 8), (128, 64, 4)), (3, 4)
        )
    ]


def _middle_candidates(block_m: int) -> list[LaunchConfig]:
    tiles = [(128, 8, None, 1), (128, 8, None, 2), (64, 4, None, 1)]
    if block_m == 32:
        tiles += [(128, 4, None, 2), (128, 8, 128, 1), (256, 8, None, 2)]
    return [
        _candidate(block_m, block_n, programs, num_warps, num_stages, max_registers, parts)
        for (block_n, num_warps, max_registers, parts), programs, num_stages in product(tiles, (1, 2), (3, 4))
    ]


def sweeps() -> list[Sweep]:
    """The launches to choose among, for the shapes that matter most."""

    def sweep(m: int, k: int, n: int, candidates: list[LaunchConfig]) -> Sweep:
        return Sweep(
            _case(m, k, n),
            candidates,
            partial(_prepare_sweep, "bf16", m, k, n, 128),
            launch_config(m, n, k, 128, 90, 132),
        )

    return [
        sweep(16, 8192, 28672, _decode_candidates()),
        sweep(16, 4096, 14336, _decode_candidates()),
        sweep(16, 8192, 8192, _decode_candidates()),
        sweep(1, 8192, 8192, _decode_candidates()),
        sweep(16, 14336, 4096, _decode_candidates()),
        sweep(32, 8192, 8192, _middle_candidates(32)),
        sweep(64, 8192, 8192, _middle_candidates(64)),
        sweep(4096, 8192, 8192, _prefill_candidates()),
    ]
