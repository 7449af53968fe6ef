"""How many points calibration needs: measured tables of an H100 stand in for the device.

``SERVETWIN_DATA=... python -m tools.active_sampling`` writes docs/results/active-sampling.md. The kernels are those of
Llama-3.1-8B on two ranks, at the shapes of the table that are nearest. A fifth of the points is never measured and
checks all fits. Readings have noise.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.held_out import FITS, held_out, undisturbed
from calibrate.importers import aiconfigurator
from calibrate.measuring.device import KernelPoint
from calibrate.measuring.fitting import Made, fit_surface, sample_tables
from calibrate.measuring.repetition import Measured, Repetition, measure
from calibrate.measuring.replay import ReplayDevice, points_of
from calibrate.measuring.sampler import Sampler
from calibrate.measuring.surrogate import Peaks, work
from calibrate.profile_writer import Origin
from calibrate.samples import SampleTable
from simcore.hardware import load_accelerator
from tools.page_template import filled

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "active-sampling.md"
TEMPLATE = Path(__file__).with_suffix(".md")
CHOSEN = "chosen"
GEMMS = ((3072, 4096), (4096, 2048), (16384, 4096), (4096, 7168), (65536, 4096))
"""Of Llama-3.1-8B on two ranks, at the nearest widths of the table: queries, keys and values; output; gate and up;
down; the head."""
HEADS, KV_HEADS, HEAD_DIM = 16, 4, 128
KINDS = ("gemm", "generation_attention", "context_attention")
NOISE = 0.02
SHARES = (0.03, 0.05, 0.08, 0.12, 0.16, 0.2, 0.3)
SEEDS = (0, 1, 2)
_BATCH = 4
"""Points that are chosen between two looks at the fits."""
_ONCE = Repetition(least=1, most=1, warm_up=0)
_DEVICE = load_accelerator("h100-sxm")
_PEAKS = Peaks(_DEVICE.peak_flops_per_s["bf16"], _DEVICE.memory_bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Grid:
    """The points of one kind that may be measured, and those that check."""

    seen: SampleTable
    unseen: SampleTable


def grids(data: Path) -> list[Grid]:
    """The table's points of the target shapes."""
    folder = data / "aiconfigurator" / "h100_sxm"
    files = {
        "gemm": "gemm/vllm/0.19.0/gemm_perf.parquet",
        "generation_attention": "attention/vllm/0.19.0/generation_attention_perf.parquet",
        "context_attention": "attention/vllm/0.19.0/context_attention_perf.parquet",
    }
    found = []
    for kind in KINDS:
        samples = undisturbed(_own(aiconfigurator.read_table(folder / files[kind], "h100_sxm")))
        held = held_out(samples)
        found.append(Grid(samples.select(~held), samples.select(held)))
    return found


def _own(samples: SampleTable) -> SampleTable:
    columns = samples.columns
    if samples.kind == "gemm":
        shapes = np.zeros(len(samples), dtype=bool)
        for n, k in GEMMS:
            shapes |= (columns["n"] == n) & (columns["k"] == k)
        return samples.select(shapes & (columns["dtype"] == "bf16"))
    own = (columns["kv_dtype"] == "bf16") & (columns["window"] == 0) & (columns["head_dim"] == HEAD_DIM)
    return samples.select(own & (columns["heads"] == HEADS) & (columns["kv_heads"] == KV_HEADS))


def bound_s(points: Sequence[KernelPoint]) -> NDArray[np.float64]:
    """The roofline's time and a launch: what is known before anything is measured."""
    flops, moved = work(points)
    peak, bandwidth = _DEVICE.peak_flops_per_s["bf16"], _DEVICE.memory_bandwidth_bytes_per_s
    return np.asarray(2e-6 + np.maximum(flops / peak, moved / bandwidth))


def weights(samples: SampleTable) -> NDArray[np.float64]:
    """Of each point the share in the time of its step, by roofline: of GEMMs by tokens, of attention beside them."""
    points = points_of(samples)
    own = bound_s(points)
    if samples.kind == "generation_attention":
        tokens = samples.columns["batch"]
    elif samples.kind == "context_attention":
        tokens = samples.columns["batch"] * samples.columns["tokens"]
    else:
        tokens = samples.columns["tokens"]
    gemms = np.zeros(len(samples))
    for n, k in GEMMS[:-1]:
        gemms += bound_s([KernelPoint("gemm", ("bf16", int(count), n, k)) for count in tokens])
    return np.asarray(own / (gemms + (own if samples.kind != "gemm" else 0.0)))


def error(measured: Sequence[Measured], all_grids: Sequence[Grid], surfaced: bool) -> dict[str, float]:
    """Mean relative error on the points that check, each by its weight: of each kind, and of all together.

    Fits are ``surfaced`` as those of calibrations, or else made of the samples alone, as those of whole grids.
    """
    made = Made("h100-sxm", "vllm", "0.19.0", Origin("table", "Apache-2.0", "2026-11-29"))
    tables = sample_tables(measured, made, "replay")
    found, together, totals = {}, [], []
    for grid in all_grids:
        kind = grid.unseen.kind
        off = np.full(len(grid.unseen), 1.0)
        if kind in tables:
            fit = FITS[kind]
            shapes = [*points_of(grid.seen), *points_of(grid.unseen)]
            made_fit = fit_surface(tables[kind], shapes, _PEAKS) if surfaced else fit.fit(tables[kind])
            nothing = np.full(len(grid.unseen), np.nan)
            priced = nothing if made_fit is None else fit.predict(made_fit, grid.unseen)
            off = np.where(np.isnan(priced), 1.0, np.abs(priced / grid.unseen.latency_s - 1))
        weight = weights(grid.unseen)
        found[kind] = float(np.average(off, weights=weight))
        together.append(off)
        totals.append(weight / weight.sum())
    found["all"] = float(np.average(np.concatenate(together), weights=np.concatenate(totals)))
    return found


def run(all_grids: Sequence[Grid], seed: int, active: bool) -> Iterator[tuple[int, dict[str, float]]]:
    """Errors after each share of the points, chosen by what is least known or at random."""
    uses = {
        point: weight
        for grid in all_grids
        for point, weight in zip(points_of(grid.seen), _normed(weights(grid.seen)), strict=True)
    }
    device = ReplayDevice([grid.seen for grid in all_grids], lambda point: uses[point], NOISE, seed)
    candidates = list(device.candidates())
    counts = [round(share * len(candidates)) for share in SHARES]
    order = np.random.default_rng(seed).permutation(len(candidates))
    sampler, measured = Sampler(candidates, by_time=False, peaks=_PEAKS), []
    for count in counts:
        while len(measured) < count:
            wanted = min(_BATCH, count - len(measured))
            drawn = [candidates[place] for place in order[len(measured) :][:wanted]]
            chosen = sampler.choose(sampler.outlook(), wanted) if active else drawn
            for candidate in chosen:
                measured.append(measure(device, candidate, _ONCE))
            sampler.tell(measured[-len(chosen) :])
        yield count, error(measured, all_grids, surfaced=True)


def _normed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(values / values.sum())


def full_grid(all_grids: Sequence[Grid], seed: int, surfaced: bool) -> dict[str, float]:
    """Errors where all points are measured."""
    device = ReplayDevice([grid.seen for grid in all_grids], lambda point: 1.0, NOISE, seed)
    return error([measure(device, candidate, _ONCE) for candidate in device.candidates()], all_grids, surfaced)


def page(
    rows: dict[str, list[dict[str, float]]], counts: Sequence[int], whole: dict[str, dict[str, float]], total: int
) -> str:
    """The document."""
    lines = ["| measured | points | share | GEMMs | decode attention | prompt attention | all |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for name, found in rows.items():
        lines += [_row(name, count, total, errors) for count, errors in zip(counts, found, strict=True)]
    lines += [_row(name, total, total, errors) for name, errors in whole.items()]
    verdicts = []
    for name, errors in whole.items():
        enough = next((n for n, e in zip(counts, rows[CHOSEN], strict=True) if e["all"] <= errors["all"]), None)
        reached = "No number of points here reaches"
        if enough is not None:
            reached = f"{enough} chosen points, {enough / total:.0%} of all, reach"
        verdicts.append(f"{reached} the error of the whole grid, {name.partition(': ')[2]}.")
    return filled(
        TEMPLATE,
        total=str(total),
        noise=f"{NOISE:.0%}",
        seeds=str(len(SEEDS)),
        table="\n".join(lines),
        verdict=" ".join(verdicts),
    )


def _row(name: str, count: int, total: int, errors: dict[str, float]) -> str:
    cells = " | ".join(f"{errors[kind]:.1%}" for kind in (*KINDS, "all"))
    return f"| {name} | {count} | {count / total:.0%} | {cells} |"


def _medians(found: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


def main() -> None:
    """Choose, fit and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    found = grids(Path(os.environ["SERVETWIN_DATA"]) / "profiles")
    total = sum(len(grid.seen) for grid in found)
    whole = {
        "all: fitted as imported tables are": _medians([full_grid(found, seed, False) for seed in SEEDS]),
        "all: fitted as calibrations are": _medians([full_grid(found, seed, True) for seed in SEEDS]),
    }
    rows, counts = {}, []
    for name, active in ((CHOSEN, True), ("at random", False)):
        runs = [list(run(found, seed, active)) for seed in SEEDS]
        counts = [count for count, _ in runs[0]]
        rows[name] = [_medians([one[place][1] for one in runs]) for place in range(len(SHARES))]
    text = page(rows, counts, whole, total)
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
