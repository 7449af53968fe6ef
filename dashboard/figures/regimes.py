"""The service over time: replicas, SLO attainment, and how fast the error budget burns."""

from itertools import chain

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.load import add_held
from dashboard.figures.style import BLUE, GREEN, ORANGE, VERMILION, panels, stretch, tint
from simcore.core.result import Columns

_SHADES = {"green": tint(GREEN), "yellow": tint(ORANGE, 0.3), "red": tint(VERMILION, 0.3)}


def service_over_time(service: Columns) -> go.Figure:
    """Replicas, attainment in per cent and burn rate, a panel each; shaded by regime."""
    figure = panels("time (s)", "replicas", "in limits (%)", "burn rate")
    edges_s = np.append(service["start_s"], service["end_s"][-1])
    curves = (
        ("replicas", BLUE, service["replicas"]),
        ("in limits", BLUE, 100 * service["slo_attainment"]),
        ("burn rate", ORANGE, service["burn_rate"]),
    )
    for row, (name, colour, values) in enumerate(curves, start=1):
        add_held(figure, edges_s, values, name, colour, row)
    shapes = [stretch(figure, start_s, end_s, _SHADES[regime]) for start_s, end_s, regime in _stretches(service)]
    figure.update_layout(showlegend=False, shapes=list(chain.from_iterable(shapes)))
    return figure


def _stretches(service: Columns) -> list[tuple[float, float, str]]:
    """Successive spans of the same regime as one."""
    found: list[tuple[float, float, str]] = []
    columns = (service[name].tolist() for name in ("start_s", "end_s", "regime"))
    for start_s, end_s, regime in zip(*columns, strict=True):
        if not regime:
            continue
        if found and found[-1][1:] == (start_s, regime):
            start_s = found.pop()[0]
        found.append((start_s, end_s, regime))
    return found
