"""What went in and came out over time."""

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.load import add_held
from dashboard.figures.style import BLUE, GREEN, ORANGE, panels
from dashboard.figures.time_bins import FloatArray, events_per_s
from simcore.core.result import Columns
from simcore.metrics.step_bins import StepBins


def throughput_over_time(requests: Columns, steps: Columns, bins: StepBins, edges_s: FloatArray) -> go.Figure | None:
    """Output tokens per second (panel above), and requests per second that arrived and that finished (below)."""
    if not len(requests["arrival_s"]) or edges_s[-1] == 0:
        return None
    figure = panels("time (s)", "output tokens/s", "requests/s")
    add_held(figure, edges_s, output_tokens_per_s(requests, steps, bins, edges_s), "output tokens/s", GREEN, 1)
    figure.update_traces(showlegend=False)
    arrivals = events_per_s(requests["arrival_s"], edges_s)
    ends_s = np.where(requests["state"] == "finished", requests["end_s"], np.nan)
    add_held(figure, edges_s, arrivals, "arrived", ORANGE, 2)
    add_held(figure, edges_s, events_per_s(ends_s, edges_s), "finished", BLUE, 2)
    figure.update_layout(legend={"y": 0.455})
    return figure


def output_tokens_per_s(requests: Columns, steps: Columns, bins: StepBins, edges_s: FloatArray) -> FloatArray:
    """Tokens of decode steps, spread over their rows, and the first token of every request where it falls.

    The one token that ends a recomputation after a preemption is not in either table, and not counted.
    """
    decoded: FloatArray = bins.spread(steps["decoding_requests"] * steps["steps"]).sum(axis=0)
    return decoded / np.diff(edges_s) + events_per_s(requests["first_token_s"], edges_s)
