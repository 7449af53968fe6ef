"""Figures of a fidelity report, as SVG files that are the same to the byte whenever they are drawn from the same data.

Drawn by matplotlib, which only those need who write the report, so that it is no part of the packages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidelity.case import Outcome
from fidelity.deviation import deviation, grouped
from fidelity.replay import LATENCIES, Replayed
from fidelity.tables import TPOT, TTFT

_ERROR_TICKS = (-100, -50, 0, 50, 100, 200, 500)
_TITLES = {TTFT: "mean TTFT", TPOT: "mean TPOT"}
_LATENCY_TITLES = {"ttft_s": "TTFT, s", "tpot_s": "TPOT, s", "e2e_s": "E2E, s"}
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def draw_scatter(outcomes: Sequence[Outcome], path: Path) -> None:
    """Simulated over measured, TTFT and TPOT, a colour per model; the band is ±10%."""
    with _style():
        figure = Figure(figsize=(9.5, 4.4), layout="constrained")
        for axes, key in zip(figure.subplots(1, 2), _TITLES, strict=True):
            for colour, (model, chosen) in zip(_COLOURS, grouped(outcomes, "model").items(), strict=False):
                pairs = [(o.case.measured[key], value) for o in chosen if (value := o.simulated[key]) is not None]
                axes.scatter(*zip(*pairs, strict=True), s=6, color=colour, label=model, linewidths=0)
            _frame(axes, key)
        figure.axes[0].legend(frameon=False, markerscale=2)
        _save(figure, path)


def draw_bias(outcomes: Sequence[Outcome], path: Path) -> None:
    """Median signed error by concurrency, a line per model."""
    with _style():
        figure = Figure(figsize=(9.5, 3.8), layout="constrained")
        for axes, key in zip(figure.subplots(1, 2), _TITLES, strict=True):
            for colour, (model, chosen) in zip(_COLOURS, grouped(outcomes, "model").items(), strict=False):
                by_load = {int(name): deviation(group, key) for name, group in grouped(chosen, "concurrency").items()}
                known = {load: found.bias * 100 for load, found in by_load.items() if found is not None}
                axes.plot(list(known), list(known.values()), marker="o", markersize=3, color=colour, label=model)
            axes.axhline(0, color="grey", linewidth=0.8)
            axes.set_xscale("log", base=2)
            axes.set_yscale("symlog", linthresh=100)
            axes.set_yticks(_ERROR_TICKS, [f"{tick:+d}" for tick in _ERROR_TICKS])
            axes.minorticks_off()
            axes.set(xlabel="concurrency", ylabel="median error, %", title=_TITLES[key])
        figure.axes[0].legend(frameon=False)
        _save(figure, path)


def draw_replay(run: Replayed, path: Path) -> None:
    """Distributions of the latencies, and the run over time; measured in black, simulated in colour."""
    with _style():
        columns = max(len(LATENCIES), len(run.series))
        figure = Figure(figsize=(9.5, 5.4), layout="constrained")
        grid = figure.subplots(2, columns, squeeze=False)
        for axes, latency in zip(grid[0], LATENCIES, strict=False):
            for values, colour, label in (
                (getattr(run.run, latency), "black", "measured"),
                (run.simulated[latency], _COLOURS[1], "simulated"),
            ):
                ordered = np.sort(values[np.isfinite(values)])
                axes.step(ordered, np.arange(1, len(ordered) + 1) / len(ordered), color=colour, label=label)
            axes.set(xlabel=_LATENCY_TITLES[latency], ylabel="share of requests")
        grid[0][0].legend(frameon=False)
        for axes, series in zip(grid[1], run.series, strict=False):
            axes.plot(series.time_s, series.measured, color="black")
            axes.plot(series.time_s, series.simulated, color=_COLOURS[1])
            axes.set(xlabel="time, s", ylabel=series.quantity)
        for axes in grid[1][len(run.series) :]:
            axes.set_axis_off()
        _save(figure, path)


@contextmanager
def _style() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rc("svg", hashsalt="servetwin")
        matplotlib.rc("font", size=9.0)
        matplotlib.rc("axes.spines", top=False, right=False)
        yield


def _frame(axes: Axes, key: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_xlim()
    line = np.array([low, high])
    axes.plot(line, line, color="grey", linewidth=0.8)
    axes.fill_between(line, line * 0.9, line * 1.1, color="grey", alpha=0.2, linewidth=0)
    axes.set(xlim=(low, high), xlabel="measured, s", ylabel="simulated, s", title=_TITLES[key])


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
