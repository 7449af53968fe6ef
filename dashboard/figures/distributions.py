"""How a latency is distributed: the share of requests, or of gaps, within a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREY, VERMILION, panels
from dashboard.formatting import number, percentile_name, time_unit
from simcore.core.result import Columns
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.metric import Latency

_LOG_FROM_RATIO = 20.0
_ROOM_FOR_LABEL = 0.32
_MARKED = ("p50", "p90", "p99")


def distribution(
    latency: Latency,
    points: Columns,
    statistics: dict[str, Any],
    of_what: str,
    limits_s: Mapping[str, float] | None = None,
) -> go.Figure | None:
    """Cumulative distribution of a latency over requests or gaps, its P50, P90 and P99 marked; None without values.

    ``limits_s``, by percentile, are drawn as lines. Axis and labels have one unit, the one that suits the median.
    ``points`` are those of ``simcore.metrics.distribution``. The curve interpolates between order statistics as the
    summary's percentiles do, so the marks lie on it.
    """
    values_s, shares = points["value_s"], points["share"]
    if not len(values_s):
        return None
    scale, unit = time_unit(statistics["p50"])
    limits = {percentile: limit_s * scale for percentile, limit_s in (limits_s or {}).items()}
    figure = _axes(values_s * scale, (statistics["p99"] or values_s[-1]) * scale, limits, f"share of {of_what}")
    note = ", logarithmic" if figure.layout.xaxis.type == "log" else ""
    figure.update_xaxes(title_text=f"{latency.short} ({unit}{note})")
    # A lone value, or the lowest of them, rises from 0; the line then stays at 100 % to the end of the axis.
    x = np.concatenate((values_s[:1], values_s, values_s[-1:])) * scale
    y = np.concatenate(([0.0], shares, [1.0]))
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": BLUE, "width": 2}, hovertemplate="%{y:.1%} within %{x}")
    for percentile, limit in limits.items():
        _draw_limit(figure, percentile, limit, unit)
    _mark(figure, scale, unit, statistics)
    return figure


def _axes(values: np.ndarray, p99: float, limits: Mapping[str, float], y_title: str) -> go.Figure:
    """An empty figure with room for labels right of P99 and for limits, logarithmic where values span decades."""
    low, high = float(values[0]), float(values[-1])
    logarithmic = low > 0 and high / low > _LOG_FROM_RATIO
    figure = panels("", y_title)
    ends = np.array([low, p99, max([high, *limits.values()])])
    if logarithmic:
        ends = np.log10(ends)
    low, p99, high = ends
    span = (high - low) or abs(high) or 1.0
    right = max(high + 0.02 * span, p99 + _ROOM_FOR_LABEL * span)
    x_axis: dict[str, Any] = {"type": "log" if logarithmic else "linear", "range": [low - 0.03 * span, right]}
    if logarithmic:
        x_axis |= {"dtick": 1 if high - low > 2 else "D2", "minor": {"ticks": "outside", "ticklen": 2}}
    y_axis = {"tickformat": ".0%", "range": [0, 1.06], "dtick": 0.25}
    figure.update_layout(xaxis=x_axis | {"tickformat": "~g"}, yaxis=y_axis, showlegend=False)
    return figure


def _draw_limit(figure: go.Figure, percentile: str, limit: float, unit: str) -> None:
    """A line at a limit as far up as the share that must keep it, where it says what it is."""
    figure.add_scatter(
        x=[limit, limit],
        y=[0, PERCENTILES[percentile] / 100],
        mode="lines",
        line={"color": GREY, "dash": "dash", "width": 1.5},
        name=f"{percentile_name(percentile)} ≤ {number(float(limit))} {unit}",
        hovertemplate="objective: %{fullData.name}<extra></extra>",
    )


def _mark(figure: go.Figure, scale: float, unit: str, statistics: dict[str, Any]) -> None:
    known = [name for name in _MARKED if statistics[name] is not None]
    values = np.array([statistics[name] for name in known]) * scale
    intervals = [statistics["ci"][name] for name in known]
    below, above = (
        [
            abs(interval[side] * scale - value) if interval else 0.0
            for interval, value in zip(intervals, values, strict=True)
        ]
        for side in (0, 1)
    )
    texts = [
        f"{percentile_name(name)} {number(float(value))} {unit}" for name, value in zip(known, values, strict=True)
    ]
    figure.add_scatter(
        x=values,
        y=[PERCENTILES[name] / 100 for name in known],
        error_x={"array": above, "arrayminus": below, "color": VERMILION, "thickness": 1.2, "width": 4},
        mode="markers+text",
        marker={"color": VERMILION, "size": 8},
        text=texts,
        textposition="bottom right",
        customdata=[percentile_name(name) for name in known],
        hovertemplate="%{customdata}: %{x}<extra></extra>",
        name="percentiles",
        cliponaxis=False,
    )
