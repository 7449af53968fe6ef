"""Verification of drafted tokens."""

from functools import partial
from itertools import product

import torch

from kernels.case import Case, Launch, Sweep
from kernels.launch import LaunchConfig
from kernels.speculative import launch_config, verify_drafts


def _verify(device: torch.device, rows: int, drafted: int, vocabulary: int, certain: bool) -> Launch:
    target = torch.randn(rows, drafted + 1, vocabulary, device=device).softmax(-1)
    draft = torch.randn(rows, drafted, vocabulary, device=device).softmax(-1)
    drafts = torch.randint(vocabulary, (rows, drafted), device=device).int()
    keys = [torch.arange(rows, device=device) for _ in range(3)]
    given = None if certain else draft
    return lambda config: lambda: verify_drafts(drafts, given, target, *keys, config=config)


def _case(rows: int, drafted: int, vocabulary: int, certain: bool) -> Case:
    shape = {"rows": rows, "drafted": drafted, "vocabulary": vocabulary}
    read = rows * vocabulary * 4 * (1 if certain else 2)  # the distributions of one position of each row
    prepare = partial(_verify, certain=certain, **shape)
    form = "certain drafts" if certain else "drawn drafts"
    return Case("verify_drafts", form, "fp32", shape, lambda device: prepare(device)(None), read, rows * vocabulary * 4)


def cases(toy: bool) -> list[Case]:
    """Batches of decode steps with three and seven drafts."""
    if toy:
        return [_case(2, 2, 50, certain) for certain in (False, True)]
    return [
        _case(rows, drafted, vocabulary, certain)
        for rows, drafted, vocabulary, certain in product((1, 16, 64), (3, 7), (32000, 128256), (False, True))
    ]


def sweeps() -> list[Sweep]:
    """Probabilities at a time, and warps."""
    candidates = [
        LaunchConfig({"tile_rows": 1, "block": block}, warps, 1)
        for block, warps in product((1024, 2048, 4096, 8192), (4, 8, 16, 32))
        if 4 <= block // (32 * warps) <= 64
    ]
    shape = {"rows": 64, "drafted": 3, "vocabulary": 128256, "certain": False}
    return [Sweep(_case(**shape), candidates, partial(_verify, **shape), launch_config(shape["vocabulary"]))]
