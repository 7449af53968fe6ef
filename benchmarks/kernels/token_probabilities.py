"""Probabilities as temperature, top-k and top-p leave them."""

from functools import partial
from itertools import product

import torch

from benchmarks.kernels.row_shapes import row_case
from benchmarks.kernels.sampling import choices, random_logits
from kernels.case import Case, Launch, Sweep
from kernels.launch import LaunchConfig
from kernels.token_probabilities import launch_config, token_probabilities


def _probabilities(device: torch.device, form: str, rows: int, vocabulary: int) -> Launch:
    logits = random_logits(rows, vocabulary, device)
    chosen = choices(form, rows, device)
    return lambda config: lambda: token_probabilities(logits, *chosen, config=config)


def _case(form: str, rows: int, vocabulary: int) -> Case:
    shape = {"rows": rows, "vocabulary": vocabulary}
    prepare = partial(_probabilities, form=form, **shape)
    return row_case("token_probabilities", form, shape, prepare, rows * vocabulary * 6, rows * vocabulary * 4)


def cases(toy: bool) -> list[Case]:
    """The rows of a batch with four drafts each."""
    if toy:
        return [_case("top-p", 2, 100)]
    return [_case(form, rows, 128256) for form, rows in product(("temperature", "top-k", "top-p"), (5, 80, 320))]


def sweeps() -> list[Sweep]:
    """Tokens at a time, and warps."""
    candidates = [
        LaunchConfig({"block": block}, warps, 1)
        for block, warps in product((2048, 4096, 8192, 16384, 32768), (4, 8, 16, 32))
        if 4 <= block // (32 * warps) <= 64
    ]
    shape = {"form": "top-p", "rows": 80, "vocabulary": 128256}
    return [Sweep(_case(**shape), candidates, partial(_probabilities, **shape), launch_config(128256))]
