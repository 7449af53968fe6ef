"""Latency, goodput and cost against the rate of requests, a line per number of GPUs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels

_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, GREY)
Summary = Mapping[str, Any]


def against_rate(
    points: Sequence[tuple[float, int, Summary]],
    y_title: str,
    figures: Mapping[str, Callable[[Summary], float | None]],
    limit: float | None = None,
    x_title: str = "rate (requests/s)",
) -> go.Figure | None:
    """``points`` are rate, GPUs and summary; of several ``figures`` the second and later are dashed.

    ``limit`` is drawn as a line across. None without points.
    """
    if not points:
        return None
    figure = panels(x_title, y_title)
    for place, gpus in enumerate(sorted({gpus for _, gpus, _ in points})):
        own = sorted(((rate, summary) for rate, count, summary in points if count == gpus), key=lambda pair: pair[0])
        for number, (name, of_summary) in enumerate(figures.items()):
            figure.add_scatter(
                x=[rate for rate, _ in own],
                y=[of_summary(summary) for _, summary in own],
                mode="lines+markers",
                name=f"{gpus} GPU{'s' if gpus > 1 else ''}{f', {name}' if name else ''}",
                line={"color": _COLOURS[place % len(_COLOURS)], "width": 2, "dash": "dash" if number else "solid"},
                marker={"size": 6},
                hovertemplate="%{y:.4~g} at %{x:.4~g}",
            )
    if limit is not None:
        figure.add_hline(y=limit, line={"color": GREY, "dash": "dot", "width": 1.5}, annotation_text="limit")
    figure.update_layout(height=340)
    return figure
