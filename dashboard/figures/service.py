"""What each tenant was served over time."""

from itertools import cycle

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels
from dashboard.markup import name_text
from simcore.core.result import Columns
from simcore.metrics.tenant_service import TenantService

_POINTS = 201
MOST_TENANTS = 10
"""More curves than these cannot be told apart; those served most are drawn."""


def tenant_service(requests: Columns, end_s: float) -> go.Figure | None:
    """Service of each tenant since the start (see ``simcore.metrics.tenant_service``); None with one tenant."""
    if len(np.unique(requests["tenant"])) < 2 or end_s == 0:
        return None
    times_s = np.linspace(0.0, end_s, _POINTS)
    service = TenantService(requests, end_s)
    drawn = service.most_served(MOST_TENANTS)
    curves = service.curves(drawn, times_s)
    figure = panels("time (s)", "service (weighted tokens)")
    for tenant, curve, colour in zip(
        service.names[drawn].tolist(), curves, cycle((BLUE, ORANGE, GREEN, VERMILION, GREY)), strict=False
    ):
        line = {"color": colour, "width": 1.6}
        figure.add_scatter(x=times_s, y=curve, name=name_text(tenant or "(unnamed)"), mode="lines", line=line)
    return figure
