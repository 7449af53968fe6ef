"""How a latency is distributed: the share of requests, or of gaps, within a time."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, VERMILION, panels
from dashboard.formatting import seconds
from dashboard.metric_names import METRIC_NAMES, PERCENTILE_NAMES
from simcore.core.result import Columns
from simcore.metrics.definitions import PERCENTILES

_LOG_FROM_RATIO = 20.0
_ROOM_FOR_LABEL = 0.32
_MARKED = ("p50", "p90", "p99")
# Latencies of a token are milliseconds, those of a request seconds; one unit per metric keeps reports comparable.
_IN_MS = ("tpot_s", "itl_s", "normalised_latency_s")


def distribution(metric: str, points: Columns, statistics: dict[str, Any], of_what: str) -> go.Figure | None:
    """Cumulative distribution of a latency over requests or gaps, its P50, P90 and P99 marked; None without values.

    ``points`` are those of ``simcore.metrics.distribution``. The curve interpolates between order statistics as the
    summary's percentiles do, so the marks lie on it.
    """
    values_s, shares = points["value_s"], points["share"]
    if not len(values_s):
        return None
    figure, scale = _axes(metric, values_s[0], values_s[-1], statistics, f"share of {of_what}")
    # A lone value, or the lowest of them, rises from 0; the line then stays at 100 % to the end of the axis.
    x = np.concatenate((values_s[:1], values_s, values_s[-1:])) * scale
    y = np.concatenate(([0.0], shares, [1.0]))
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": BLUE, "width": 2}, hovertemplate="%{y:.1%} within %{x}")
    _mark(figure, scale, statistics)
    return figure


def _axes(
    metric: str, low_s: float, high_s: float, statistics: dict[str, Any], y_title: str
) -> tuple[go.Figure, float]:
    """An empty figure with room for labels right of P99, logarithmic where the values span decades; and its unit."""
    scale, unit = (1e3, "ms") if metric in _IN_MS else (1.0, "s")
    logarithmic = low_s > 0 and high_s / low_s > _LOG_FROM_RATIO
    note = ", logarithmic" if logarithmic else ""
    figure = panels(f"{METRIC_NAMES[metric].short} ({unit}{note})", y_title)
    low, p99, high = (np.array([low_s, statistics["p99"] or high_s, high_s])) * scale
    if logarithmic:
        low, p99, high = np.log10([low, p99, high])
    span = (high - low) or abs(high) or 1.0
    right = max(high + 0.02 * span, p99 + _ROOM_FOR_LABEL * span)
    figure.update_xaxes(type="log" if logarithmic else "linear", range=[low - 0.03 * span, right], tickformat="~g")
    if logarithmic:
        figure.update_xaxes(dtick=1 if high - low > 2 else "D2", minor={"ticks": "outside", "ticklen": 2})
    figure.update_yaxes(tickformat=".0%", range=[0, 1.06], dtick=0.25)
    figure.update_layout(showlegend=False)
    return figure, scale


def _mark(figure: go.Figure, scale: float, statistics: dict[str, Any]) -> None:
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
    texts = [f"{PERCENTILE_NAMES[name]} {seconds(statistics[name])}" for name in known]
    figure.add_scatter(
        x=values,
        y=[PERCENTILES[name] / 100 for name in known],
        error_x={"array": above, "arrayminus": below, "color": VERMILION, "thickness": 1.2, "width": 4},
        mode="markers+text",
        marker={"color": VERMILION, "size": 8},
        text=texts,
        textposition="bottom right",
        customdata=[PERCENTILE_NAMES[name] for name in known],
        hovertemplate="%{customdata}: %{x}<extra></extra>",
        name="percentiles",
        cliponaxis=False,
    )
