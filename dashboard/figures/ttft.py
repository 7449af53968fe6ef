"""How long requests waited for their first token, by when they arrived."""

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, VERMILION, panels
from dashboard.figures.time_bins import FloatArray
from dashboard.formatting import time_unit
from simcore.core.result import Columns


def ttft_over_time(requests: Columns, edges_s: FloatArray) -> go.Figure | None:
    """P50 and P99 of TTFT over the requests that arrived in each bin; None if nobody got a token."""
    known = ~np.isnan(requests["ttft_s"])
    if not known.any():
        return None
    arrival_s, ttft_s = requests["arrival_s"][known], requests["ttft_s"][known]
    scale, unit = time_unit(float(np.median(ttft_s)))
    bins = np.clip(np.searchsorted(edges_s, arrival_s, side="right") - 1, 0, len(edges_s) - 2)
    figure = panels("time of arrival (s)", f"TTFT ({unit})")
    for name, percent, colour in (("P99", 99, VERMILION), ("P50", 50, BLUE)):
        figure.add_scatter(
            x=(edges_s[:-1] + edges_s[1:]) / 2,
            y=[
                float(np.percentile(ttft_s[bins == place], percent)) * scale if (bins == place).any() else None
                for place in range(len(edges_s) - 1)
            ],
            mode="lines+markers",
            marker={"size": 4},
            line={"color": colour, "width": 1.5},
            name=name,
            hovertemplate="%{y:,.4~g} " + unit,
        )
    return figure
