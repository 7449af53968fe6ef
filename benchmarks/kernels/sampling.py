"""Sampling from logits, by what is asked of it."""

from dataclasses import replace
from functools import partial
from itertools import product

import torch

from benchmarks.kernels.row_shapes import row_case
from kernels.case import Case, Launch, Sweep
from kernels.launch import LaunchConfig
from kernels.sampling import launch_config, sample

FORMS = {
    "greedy": (0.0, 0, 1.0),
    "temperature": (1.0, 0, 1.0),
    "top-k": (1.0, 50, 1.0),
    "top-p": (1.0, 0, 0.9),
    "top-k and top-p": (1.0, 50, 0.9),
}
"""Temperature, top-k, top-p."""


def choices(form: str, rows: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same temperature, top-k and top-p for all rows."""
    temperature, top_k, top_p = FORMS[form]
    return (
        torch.full((rows,), temperature, device=device),
        torch.full((rows,), top_k, dtype=torch.int32, device=device),
        torch.full((rows,), top_p, device=device),
    )


def random_logits(rows: int, vocabulary: int, device: torch.device) -> torch.Tensor:
    """Normal logits with a deviation of 3, so that a few tokens have most of the probability, as models' do."""
    return (torch.randn(rows, vocabulary, device=device) * 3).to(torch.bfloat16)


def _sample(device: torch.device, form: str, rows: int, vocabulary: int) -> Launch:
    logits = random_logits(rows, vocabulary, device)
    chosen = choices(form, rows, device)
    keys = [torch.arange(rows, device=device) for _ in range(3)]
    return lambda config: lambda: sample(logits, *chosen, *keys, config=config)


def _case(form: str, rows: int, vocabulary: int) -> Case:
    shape = {"rows": rows, "vocabulary": vocabulary}
    return row_case(
        "sample", form, shape, partial(_sample, form=form, **shape), rows * (vocabulary * 2 + 40), rows * vocabulary * 4
    )


def cases(toy: bool) -> list[Case]:
    """Batches of decode steps at the vocabularies of Llama 2, Llama 3 and Gemma."""
    if toy:
        return [_case(form, 2, 100) for form in FORMS]
    return [
        _case(form, rows, vocabulary)
        for form, rows, vocabulary in product(FORMS, (1, 64, 256), (32000, 128256, 256000))
    ]


def sweeps() -> list[Sweep]:
    """Tokens a program, in both kernels, and warps."""
    candidates = [
        LaunchConfig({"race": race, "settle": settle, "settle_warps": warps}, warps, 1)
        for race, settle, warps in product((1024, 2048, 4096, 8192), (4096, 8192, 16384), (4, 8, 16))
        if max(race, settle) // (32 * warps) <= 64 and race <= settle
    ]
    shipped = launch_config(128256)
    settling = LaunchConfig(shipped.tiles, shipped.tiles["settle_warps"], 1)  # as nearly all of the time is, where kept
    return [
        Sweep(_case(form, 64, 128256), candidates, partial(_sample, form=form, rows=64, vocabulary=128256), nearest)
        for form, nearest in (
            ("temperature", replace(shipped, tiles={**shipped.tiles, "settle_warps": shipped.num_warps})),
            ("top-p", settling),
            ("top-k and top-p", settling),
        )
    ]
