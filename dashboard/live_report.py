"""The report of a validation: a live run and its simulation, one over the other, under each load."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.overlays import overlay
from dashboard.figures.style import BLUE, GREY, VERMILION, panels, place
from dashboard.markup import facts, section, text
from dashboard.page import figure_block, page
from experiments.comparison import Curve
from fidelity.live_validation import RegimeCompared
from simcore.core.result import Columns, Result
from simcore.metrics.distribution import cumulative_points

_NAMES = {"live": "live", "simulated": "simulated"}
_TITLES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2E"}
_UNITS = {"ttft_s": 1.0, "tpot_s": 1e3, "itl_s": 1e3, "e2e_s": 1.0, "step_s": 1e3}


def render_live_report(title: str, regimes: Sequence[RegimeCompared], about: Mapping[str, str]) -> str:
    """The report as one HTML page; ``about`` says what was run, and on what."""
    body = f"<header><h1>{text(title)}</h1></header>" + section("What was run", facts(
        [(name, text(value)) for name, value in about.items()]
    ))  # fmt: skip
    return page(title, body + "".join(_regime(place, regime) for place, regime in enumerate(regimes)))


def _regime(place: int, regime: RegimeCompared) -> str:
    verdict = f"all {regime.plans:,} plans equal" if regime.difference is None else str(regime.difference)
    blocks = [
        figure_block(f"r{place}{metric}", _distribution(metric, regime), _TITLES[metric], "Cumulative.")
        for metric in _TITLES
    ]
    timelines = figure_block(
        f"r{place}time",
        _timelines(regime),
        "Timelines",
        "Requests that run, and steps' mean batch; live above, simulated below.",
    )
    return section(
        f"Load: {regime.name}",
        f"<p>Decisions under the live clock: {text(verdict)}.</p>{_times(regime)}{_parts(regime)}"
        f'<div class="grid">{"".join(blocks)}</div><div class="stack">{timelines}</div>',
    )


def _times(regime: RegimeCompared) -> str:
    rows = []
    for row in regime.times:
        scale = _UNITS.get(row.metric, 1.0)
        unit = {1.0: "s", 1e3: "ms"}[scale] if row.metric in _UNITS else "/s"
        error = "–" if row.error is None else f"{row.error:+.1%}"
        name = f"{row.metric.removesuffix('_s')} {row.statistic}"
        rows.append(
            (name, text(f"{row.live * scale:.4g} {unit} live, {row.simulated * scale:.4g} {unit} simulated: {error}"))
        )
    return f'<div class="panel"><h3>Times</h3>{facts(rows)}</div>'


def _parts(regime: RegimeCompared) -> str:
    total_s = sum(part.live_s for part in regime.parts) or 1.0
    rows = []
    for part in regime.parts:
        share = (part.priced_s - part.live_s) / total_s
        rows.append((part.part, text(f"{part.live_s:.4g} s live, {part.priced_s:.4g} s priced: {share:+.2%} of all")))
    blocks = f'<div class="panel"><h3>Where the error of step times comes from</h3>{facts(rows)}</div>'
    if regime.operators:
        sum_s = sum(part.live_s for part in regime.operators) or 1.0
        rows = [
            (part.part, text(f"{part.live_s:.4g} s measured, {part.priced_s:.4g} s priced: "
                             f"{(part.priced_s - part.live_s) / sum_s:+.2%} of all"))
            for part in regime.operators
        ]  # fmt: skip
        blocks += f'<div class="panel"><h3>Operators of some steps</h3>{facts(rows)}</div>'
        return blocks
    all_s = sum(regime.terms_s.values()) or 1.0
    terms = [(name, text(f"{value / all_s:.1%} of the price")) for name, value in regime.terms_s.items()]
    outside = text(f"{regime.outside_share:.1%} of the steps have fewer or more tokens than any that was measured.")
    return f'{blocks}<div class="panel"><h3>What prices consist of</h3>{facts(terms)}<p>{outside}</p></div>'


def _distribution(metric: str, regime: RegimeCompared) -> go.Figure | None:
    curves = {}
    for name, result in (("live", regime.live), ("simulated", regime.simulated)):
        points = _points(metric, result)
        if len(points["value_s"]):
            curves[name] = Curve(np.asarray(points["value_s"]), np.asarray(points["share"]))
    return overlay(metric, curves, _NAMES, "live") if len(curves) == len(_NAMES) else None


def _points(metric: str, result: Result) -> Columns:
    if metric == "itl_s":
        return result.token_gaps
    finished = result.requests["state"] == "finished"
    return cumulative_points(result.requests[metric][finished])


def _timelines(regime: RegimeCompared) -> go.Figure:
    figure = panels("time (s)", "live", "simulated")
    for row, result in ((1, regime.live), (2, regime.simulated)):
        steps = result.steps
        for name, colour in (("running_requests", BLUE), ("waiting_requests", VERMILION)):
            figure.add_scatter(
                x=steps["start_s"], y=steps[name], mode="lines", line={"shape": "hv", "color": colour, "width": 1.5},
                name=name.replace("_", " "), showlegend=row == 1, **place(row),
            )  # fmt: skip
        figure.add_scatter(
            x=result.requests["arrival_s"], y=np.zeros(len(result.requests["arrival_s"])), mode="markers",
            marker={"color": GREY, "symbol": "line-ns-open", "size": 6}, name="arrivals", showlegend=row == 1,
            **place(row),
        )  # fmt: skip
    figure.update_xaxes(matches="x")
    return figure
