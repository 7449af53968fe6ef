"""The report of a calibration: measured against fitted by kernel, residuals, a roofline, and what a scenario needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from calibrate.fit.held_out import FITS, CheckedFit
from calibrate.measuring.replay import points_of
from calibrate.measuring.surrogate import work
from calibrate.physics import RISES_WITH
from calibrate.samples import SHAPE_COLUMNS, SampleTable
from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels
from dashboard.markup import box, facts, section, text
from dashboard.page import figure_block, page
from simcore.hardware import Accelerator

_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, GREY)
_MOST_CURVES = 5


@dataclass(frozen=True, slots=True)
class MixedStep:
    """A step of decodes and a chunk that no fit has seen, in seconds."""

    shape: str
    measured_s: float
    priced_s: float


@dataclass(frozen=True, slots=True)
class Needed:
    """What steps of a scenario need of one kernel kind, over two sizes, each step once; which of them are covered."""

    scenario: str
    kind: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    covered: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """What the report is made of; ``about`` are facts by name, ``told`` sentences on what was left out."""

    title: str
    about: Mapping[str, str]
    told: Sequence[str]
    fits: Mapping[str, CheckedFit]
    accelerator: Accelerator
    mixed: Sequence[MixedStep]
    needed: Sequence[Needed] = field(default_factory=list)


def render_calibration(view: CalibrationView) -> str:
    """The report as one HTML page."""
    parts = [f"<header><h1>{text(view.title)}</h1></header>", box("warning", "Left out", view.told)]
    parts.append(section("What was measured", facts([(name, text(value)) for name, value in view.about.items()])))
    parts.append(section("How well it is known", facts(list(_errors(view)))))
    parts += [_kind(kind, checked) for kind, checked in view.fits.items()]
    roofline = figure_block("roofline", _roofline(view), "Roofline", "Every sample; lines are the datasheet's rates.")
    parts.append(section("Roofline", f'<div class="stack">{roofline}</div>'))
    if view.needed:
        maps = (
            figure_block(f"need{place}", _map(needed), f"{needed.scenario}: {needed.kind}", "Steps of a simulation.")
            for place, needed in enumerate(view.needed)
        )
        parts.append(section("What the scenario needs", f'<div class="grid">{"".join(maps)}</div>'))
    return page(view.title, "".join(parts))


def _errors(view: CalibrationView) -> Iterator[tuple[str, str]]:
    for kind, checked in view.fits.items():
        for group, errors in checked.errors.items():
            said = f"median {errors.median:.1%}, P90 {errors.p90:.1%} of {errors.points} held-out points"
            yield f"{kind} ({group})", text(said)
    for one in view.mixed:
        said = f"{one.measured_s * 1e3:.3g} ms measured, {one.priced_s * 1e3:.3g} ms priced"
        yield f"step {one.shape}", text(f"{said}: {one.priced_s / one.measured_s - 1:+.1%}")


def _kind(kind: str, checked: CheckedFit) -> str:
    fitted, residuals = _curves(kind, checked)
    blocks = figure_block(f"f{kind}", fitted, "Measured and fitted", "Points are medians, lines the profile's prices.")
    blocks += figure_block(f"e{kind}", residuals, "Residuals", "Price over measurement, in percent.")
    return section(kind, f'<div class="grid">{blocks}</div>')


def _curves(kind: str, checked: CheckedFit) -> tuple[go.Figure | None, go.Figure | None]:
    size = RISES_WITH.get(kind)
    if size is None:
        return None, None
    samples = checked.samples
    priced_s = FITS[kind].predict(checked.fitted, samples)
    fitted, residuals = panels(size, "time (us)"), panels(size, "residual (%)")
    for place, (name, rows) in enumerate(_groups(samples, size)):
        colour = _COLOURS[place % len(_COLOURS)]
        order = rows[np.argsort(samples.columns[size][rows], kind="stable")]
        x = samples.columns[size][order]
        marker = {"color": colour, "size": 5}
        shown = {"name": name, "legendgroup": name}
        fitted.add_scatter(x=x, y=samples.latency_s[order] * 1e6, mode="markers", marker=marker, **shown)
        fitted.add_scatter(
            x=x, y=priced_s[order] * 1e6, mode="lines", line={"color": colour, "width": 1.2}, showlegend=False, **shown
        )
        off = 100 * (priced_s[order] / samples.latency_s[order] - 1)
        residuals.add_scatter(x=x, y=off, mode="markers", marker=marker, **shown)
    for figure in (fitted, residuals):
        figure.update_xaxes(type="log")
    fitted.update_yaxes(type="log")
    return fitted, residuals


def _groups(samples: SampleTable, size: str) -> list[tuple[str, NDArray[np.int64]]]:
    """The rows that differ in size alone, those with the most first."""
    names = [name for name in SHAPE_COLUMNS[samples.kind] if name != size]
    several = [name for name in names if len(np.unique(samples.columns[name])) > 1]
    rows: dict[str, list[int]] = {}
    for place in range(len(samples)):
        label = ", ".join(f"{name} {samples.columns[name][place]}" for name in several) or samples.kind
        rows.setdefault(label, []).append(place)
    longest = sorted(rows.items(), key=lambda item: -len(item[1]))[:_MOST_CURVES]
    return [(label, np.array(places)) for label, places in longest]


def _roofline(view: CalibrationView) -> go.Figure | None:
    figure = panels("operations per byte", "operations (10^9/s)")
    peak = max(view.accelerator.peak_flops_per_s.values())
    bandwidth = view.accelerator.memory_bandwidth_bytes_per_s
    for place, (kind, checked) in enumerate(view.fits.items()):
        samples = checked.samples
        if kind in ("collective", "elementwise"):
            continue
        flops, moved = work(points_of(samples))
        figure.add_scatter(
            x=flops / moved, y=flops / samples.latency_s / 1e9, mode="markers", name=kind,
            marker={"size": 5, "color": _COLOURS[place % len(_COLOURS)]},
        )  # fmt: skip
    x = np.geomspace(0.1, 1e4, 60)
    roof = np.minimum(peak, x * bandwidth) / 1e9
    figure.add_scatter(x=x, y=roof, mode="lines", name=view.accelerator.name, line={"color": GREY, "width": 1.5})
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


def _map(needed: Needed) -> go.Figure | None:
    if not len(needed.x):
        return None
    x_title, y_title = (
        ("decodes", "context") if needed.kind == "generation_attention" else ("prompt tokens", "decodes beside")
    )
    figure = panels(x_title, y_title)
    for name, rows, colour in (("covered", needed.covered, GREEN), ("not covered", ~needed.covered, VERMILION)):
        figure.add_scatter(
            x=needed.x[rows], y=needed.y[rows], mode="markers", name=name, marker={"color": colour, "size": 5}
        )
    figure.update_xaxes(type="log")
    return figure
