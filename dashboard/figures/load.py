"""How busy the service was: waiting and running requests over time."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, ORANGE, panels, tint
from dashboard.figures.time_bins import FloatArray, mean_present
from simcore.core.result import Columns
from simcore.metrics.step_bins import StepBins


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
        row=row,
        col=1,
        **style,
    )
