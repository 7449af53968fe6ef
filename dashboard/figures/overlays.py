"""How a latency is distributed under several variants, one curve over the other."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels
from dashboard.formatting import number, percentile_name, time_unit
from dashboard.markup import text
from experiments.comparison import Curve
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.registry import latency

# Two more of the palette of Okabe and Ito, as comparisons need more colours than runs.
_SKY, _PURPLE = "#56B4E9", "#CC79A7"
_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, _PURPLE, _SKY)
_DASHES = ("solid", "dash", "dot", "dashdot")
_LOG_FROM_RATIO = 20.0


def overlay(
    metric: str,
    curves: Mapping[str, Curve],
    names: Mapping[str, str],
    baseline: str,
    limits_s: Mapping[str, float] | None = None,
) -> go.Figure | None:
    """Cumulative distributions of a latency, the baseline's in grey; None if no variant has any.

    ``curves`` and ``names``, what variants are called for short, are by their labels. ``limits_s``, by percentile, are
    drawn as lines as far up as the share that must keep them.
    """
    if not curves:
        return None
    reference = curves.get(baseline, next(iter(curves.values())))
    scale, unit = time_unit(float(np.interp(0.5, reference.shares, reference.values_s)))
    least = min(float(curve.values_s[0]) for curve in curves.values())
    greatest = max(float(curve.values_s[-1]) for curve in curves.values())
    logarithmic = least > 0 and greatest / least > _LOG_FROM_RATIO
    figure = panels(f"{latency(metric).short} ({unit}{', logarithmic' if logarithmic else ''})", "share of requests")
    others = [variant for variant in curves if variant != baseline]
    for variant, curve in curves.items():
        place = others.index(variant) if variant in others else 0
        dash = _DASHES[place // len(_COLOURS) % len(_DASHES)] if variant in others else "solid"
        colour = _COLOURS[place % len(_COLOURS)] if variant in others else GREY
        figure.add_scatter(
            x=np.concatenate((curve.values_s[:1], curve.values_s)) * scale,
            y=np.concatenate(([0.0], curve.shares)),
            mode="lines",
            name=text(names[variant]),
            line={"color": colour, "dash": dash, "width": 2 if variant in others else 3},
            hovertemplate="%{y:.1%} within %{x:.4~g} " + unit,
        )
    for percentile, limit_s in (limits_s or {}).items():
        figure.add_scatter(
            x=[limit_s * scale] * 2,
            y=[0, PERCENTILES[percentile] / 100],
            mode="lines",
            line={"color": GREY, "dash": "dash", "width": 1.5},
            name=f"{percentile_name(percentile)} ≤ {number(limit_s * scale)} {unit}",
            hovertemplate="objective: %{fullData.name}<extra></extra>",
        )
    figure.update_xaxes(type="log" if logarithmic else "linear", tickformat="~g")
    if logarithmic:
        decades = np.log10(greatest / least)
        figure.update_xaxes(dtick=1 if decades > 2 else "D2", minor={"ticks": "outside", "ticklen": 2})
    figure.update_yaxes(tickformat=".0%", range=[0, 1.03], dtick=0.25)
    figure.update_layout(height=360)
    return figure
