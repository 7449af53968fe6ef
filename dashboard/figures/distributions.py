"""How a latency is distributed: the share of requests served within a time."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.figures.style import BLUE, GREY, VERMILION, panels
from dashboard.formatting import seconds
from dashboard.metric_names import METRIC_NAMES, PERCENTILE_NAMES
from simcore.metrics.definitions import PERCENTILES

FloatArray = NDArray[np.float64]

_POINTS = 600
_LOG_FROM_RATIO = 20.0
_ROOM_FOR_LABEL = 0.32
_MARKED = ("p50", "p90", "p99")
# Latencies of a token are milliseconds, those of a request seconds; one unit per metric keeps reports comparable.
_IN_MS = ("tpot_s", "itl_s", "normalised_latency_s")


def distribution(metric: str, values_s: FloatArray, statistics: dict[str, Any]) -> go.Figure | None:
    """Cumulative distribution of a latency over requests, its P50, P90 and P99 marked; None without values.

    The curve interpolates between order statistics as the summary's percentiles do, so the marks lie on it.
    """
    values_s = np.sort(values_s[~np.isnan(values_s)])
    if not len(values_s):
        return None
    ranks = cumulative_ranks(len(values_s))
    shares = ranks / max(len(values_s) - 1, 1)
    figure, scale = _axes(metric, values_s[0], values_s[-1], statistics, "share of requests")
    # A lone value, or the lowest of them, rises from 0; the line then stays at 100 % to the end of the axis.
    x = np.concatenate((values_s[:1], values_s[ranks], values_s[-1:])) * scale
    y = np.concatenate(([0.0], shares, [1.0]))
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": BLUE, "width": 2}, hovertemplate="%{y:.1%} within %{x}")
    _mark(figure, scale, statistics, _MARKED)
    return figure


def percentile_points(metric: str, statistics: dict[str, Any]) -> go.Figure | None:
    """The percentiles that the summary knows of a latency, with their confidence intervals; None without values.

    For a latency whose single values a run does not keep; nothing is drawn between the points.
    """
    if not statistics["count"]:
        return None
    figure, scale = _axes(metric, statistics["min"], statistics["max"], statistics, "share of gaps")
    ends = [statistics["min"] * scale, statistics["max"] * scale]
    figure.add_scatter(
        x=ends, y=[0, 1], mode="markers", marker={"color": GREY, "symbol": "line-ns-open", "size": 12}, name="min, max"
    )
    _mark(figure, scale, statistics, tuple(PERCENTILES))
    return figure


def cumulative_ranks(count: int) -> NDArray[np.int64]:
    """Which of ``count`` sorted values to draw: evenly spread ones, and ever closer ones in the upper tail."""
    even = np.linspace(0, count - 1, min(count, _POINTS))
    tail = count - 1 - np.geomspace(1, count, min(count, _POINTS // 2))
    return np.unique(np.clip(np.concatenate((even, tail)), 0, count - 1).astype(np.int64))


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


def _mark(figure: go.Figure, scale: float, statistics: dict[str, Any], names: tuple[str, ...]) -> None:
    known = [name for name in names if statistics[name] is not None]
    values = np.array([statistics[name] for name in known]) * scale
    intervals = [statistics["ci"][name] for name in known]
    below, above = (
        [
            abs(interval[side] * scale - value) if interval else 0.0
            for interval, value in zip(intervals, values, strict=True)
        ]
        for side in (0, 1)
    )
    labelled = [name in _MARKED for name in known]
    texts = [
        f"{PERCENTILE_NAMES[name]} {seconds(statistics[name])}" if shown else ""
        for name, shown in zip(known, labelled, strict=True)
    ]
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
