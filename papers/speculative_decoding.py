"""Speculative decoding: how many tokens an iteration yields, and how much faster that makes a service."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from papers.harness.catalogue import published_of
from papers.harness.simulating import poisson
from papers.harness.study import Cell, Figures, Measured, Size, Study
from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape

GAMMAS = (1, 2, 3, 4, 5, 6, 7, 8)
BATCHES = (1, 16, 64, 256)
CONTEXT = 1024
GAMMA = 4
SETUPS = {"H100": "h100-sxm", "B200": "b200"}
LENGTHS = {"prompt_tokens": {"name": "fixed", "tokens": 1}, "output_tokens": {"name": "fixed", "tokens": 1}}


def expected_tokens(acceptance: float, gamma: int) -> float:
    """Tokens of an iteration with ``gamma`` drafted ones, each accepted with ``acceptance`` (equation 1)."""
    return float((1 - acceptance ** (gamma + 1)) / (1 - acceptance))


def speedup(acceptance: float, gamma: int, cost: float) -> float:
    """Over decoding without drafts, where a draft step costs ``cost`` of a target step (theorem 3.8)."""
    return expected_tokens(acceptance, gamma) / (gamma * cost + 1)


def drawn_tokens(acceptance: float, gamma: int, iterations: int, seed: int) -> float:
    """The mean over iterations in which tokens are drawn, one after another until one is rejected."""
    accepted = np.random.default_rng(seed).random((iterations, gamma)) < acceptance
    return float(1 + np.cumprod(accepted, axis=1).sum(axis=1).mean())


def measure(cell: Cell) -> Figures:
    """Tokens and speed-up of the paper's table, of drafts that engines measured, and of the simulator's prices."""
    stated = published_of("speculative-decoding").parameters
    if cell.setup in SETUPS:
        tokens = stated["acceptance_lengths"]["Kimi-K2.5 EAGLE-3"][GAMMA - 1]
        return {f"speedup at {batch}": _served(SETUPS[cell.setup], batch, tokens) for batch in BATCHES}
    if cell.setup == "measured drafts":
        lengths = stated["acceptance_lengths"][cell.system]
        acceptance = lengths[0] - 1
        ratios = {f"formula over measured at {g}": expected_tokens(acceptance, g) / lengths[g - 1] for g in GAMMAS}
        return ratios | {f"tokens at {g}": lengths[g - 1] for g in GAMMAS}
    row = stated["table"][cell.system]
    drawn = drawn_tokens(row["acceptance"], row["gamma"], cell.size.requests, cell.seed)
    return {
        "speedup": drawn / (row["gamma"] * stated["cost"] + 1),
        "drawn over formula": drawn / expected_tokens(row["acceptance"], row["gamma"]),
    }


def _served(accelerator: str, batch: int, tokens: float) -> float:
    """The speed-up of a batch of decodes whose every step checks ``GAMMA`` drafts of each, for so many ``tokens``."""
    decode = StepShape(decodes=batch, context_tokens=CONTEXT)
    check = StepShape(chunks=((GAMMA + 1, CONTEXT),) * batch)
    target_s, check_s = (_step_s("qwen2.5-72b", accelerator, 4, shape) for shape in (decode, check))
    draft_s = _step_s("qwen2.5-0.5b", accelerator, 1, decode)
    return tokens * target_s / (check_s + GAMMA * draft_s)


@cache
def _step_s(model: str, accelerator: str, ranks: int, shape: StepShape) -> float:
    cluster = {"accelerator": accelerator, "tensor_parallel": ranks}
    document = {"model": model, "cluster": cluster, "workload": {**poisson(1, 1.0), **LENGTHS}}
    return explain_step(Simulation.prepare(document, Path()), shape).seconds


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """The curve of tokens over drafts, measured drafts beside it, and speed-ups."""
    table = STUDY.cells["published"]
    lines = [Series(f"formula, {a}", GAMMAS, [expected_tokens(a, g) for g in GAMMAS]) for a in (0.6, 0.8, 0.9)]
    drafts = [
        Series(name, GAMMAS, [measured.mean("measured drafts", name, f"tokens at {g}") for g in GAMMAS], published=True)
        for name in STUDY.cells["measured drafts"]
    ]
    published = Series("speed-up", table, [curves["speedup"][name] for name in table], published=True)
    ours = Series("speed-up", table, [measured.mean("published", name, "speedup") for name in table])
    served = [
        Series(setup, BATCHES, [measured.mean(setup, "drafts", f"speedup at {batch}") for batch in BATCHES])
        for setup in SETUPS
    ]
    return [
        Chart("Tokens of an iteration", "drafted tokens", "tokens", [*drafts, *lines]),
        Chart("Speed-up of the paper's models", "task and temperature", "speed-up", [published, ours], "bars"),
        Chart("Speed-up of Qwen2.5-72B", "requests in a batch", "speed-up", served, log_x=True),
    ]


STUDY = Study(
    cells={
        "published": ("EnDe, T=0", "EnDe, T=1", "CNNDM, T=0", "CNNDM, T=1"),
        "measured drafts": ("DeepSeek-V4-Pro MTP", "Kimi-K2.5 EAGLE-3"),
        **dict.fromkeys(SETUPS, ("drafts",)),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=20_000, seeds=5),
    smoke=Size(requests=2_000, seeds=2),
)
