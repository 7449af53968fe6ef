"""How busy the service was: waiting and running requests over time."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, ORANGE, panels, place, tint
from dashboard.figures.time_bins import FloatArray, mean_present
from simcore.core.result import Columns
from simcore.metrics.step_bins import StepBins

_FRAME_HEIGHT, _ROW_HEIGHT = 110, 22


def load_over_time(requests: Columns, steps: Columns, bins: StepBins, edges_s: FloatArray) -> go.Figure | None:
    """Requests that run (panel above) and that wait to run for the first time (below), all replicas together."""
    if not len(steps["start_s"]):
        return None
    figure = panels("time (s)", "running requests", "waiting requests")
    until_s = np.where(np.isnan(requests["first_scheduled_s"]), requests["end_s"], requests["first_scheduled_s"])
    until_s = np.where(np.isnan(until_s), edges_s[-1], until_s)
    curves = (
        ("running", BLUE, bins.mean(steps["running_requests"]).sum(axis=0)),
        ("waiting", ORANGE, mean_present(requests["arrival_s"], until_s, edges_s)),
    )
    for row, (name, colour, values) in enumerate(curves, start=1):
        add_held(figure, edges_s, values, name, colour, row, fill="tozeroy", fillcolor=tint(colour))
    figure.update_layout(showlegend=False)
    return figure


def load_per_replica(steps: Columns, bins: StepBins, edges_s: FloatArray) -> go.Figure | None:
    """Running requests of every replica, a row each, darker where they are more; None without steps."""
    if not len(steps["start_s"]):
        return None
    running = bins.mean(steps["running_requests"])
    figure = panels("time (s)", "replica")
    figure.add_heatmap(
        x=(edges_s[:-1] + edges_s[1:]) / 2,
        y=[f"replica {index}" for index in range(len(running))],
        z=np.round(running, 3),
        colorscale=[[0, "rgba(0, 0, 0, 0)"], [1, BLUE]],
        zmin=0,
        colorbar={"title": {"text": "requests"}, "thickness": 12},
        hovertemplate="%{y}: %{z:,.4~g} running at %{x:.4~g} s<extra></extra>",
    )
    figure.update_yaxes(type="category", autorange="reversed", automargin=True)
    figure.update_layout(showlegend=False, height=_FRAME_HEIGHT + _ROW_HEIGHT * len(running))
    return figure


def add_held(
    figure: go.Figure, edges_s: FloatArray, values: FloatArray, name: str, colour: str, row: int = 1, **style: Any
) -> None:
    """Draw one value per bin, held from edge to edge."""
    figure.add_scatter(
        x=edges_s,
        y=np.append(values, values[-1]),
        mode="lines",
        line={"shape": "hv", "color": colour, "width": 1.5},
        name=name,
        hovertemplate="%{y:,.4~g}",
        **place(row),
        **style,
    )
