"""A picture of a trace: when requests arrive and how long they are."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.markup import text
from simcore.core.outputs import PAGE_MARK, is_page, replace_text
from simcore.workload.traces import Trace

_PROMPT_COLOUR, _OUTPUT_COLOUR, _RATE_COLOUR = "#4269d0", "#efb118", "#3ca951"
_RATE_BINS = 120
_LENGTH_BINS = 60


def trace_figure(trace: Trace, title: str) -> go.Figure:
    """Arrival rate over time (if the trace has arrivals) above the distributions of prompt and output length."""
    with_rate = trace.arrival_ns is not None and trace.arrival_ns[-1] > 0
    titles = (["Arrival rate"] if with_rate else []) + ["Prompt length", "Output length"]
    specs: list[list[dict[str, int] | None]] = [[{}, {}]]
    if with_rate:
        specs.insert(0, [{"colspan": 2}, None])
    figure = make_subplots(rows=len(specs), cols=2, specs=specs, subplot_titles=titles, vertical_spacing=0.16)
    if trace.arrival_ns is not None and with_rate:
        edges_s, rate_per_s = arrival_rate(trace.arrival_ns / 1e9)
        figure.add_trace(_steps(edges_s, rate_per_s, _RATE_COLOUR), row=1, col=1)
        figure.update_xaxes(title_text="time since the first request (s)", row=1, col=1)
        figure.update_yaxes(title_text="requests/s", rangemode="tozero", row=1, col=1)
    lengths = ((trace.prompt_tokens, _PROMPT_COLOUR), (trace.output_tokens, _OUTPUT_COLOUR))
    for column, (tokens, colour) in enumerate(lengths, start=1):
        edges, counts = length_histogram(tokens)
        figure.add_trace(_steps(edges, counts, colour), row=len(specs), col=column)
        figure.update_xaxes(title_text="tokens (logarithmic)", type="log", row=len(specs), col=column)
        figure.update_yaxes(title_text="requests", rangemode="tozero", row=len(specs), col=column)
    figure.update_layout(title=text(title), template="plotly_white", showlegend=False, height=360 * len(specs))
    return figure


def _steps(edges: np.ndarray, heights: np.ndarray, colour: str) -> go.Scatter:
    """A histogram's outline, filled; bars have no dependable width on a logarithmic axis."""
    heights = np.append(heights, heights[-1])
    return go.Scatter(x=edges, y=heights, mode="lines", line={"shape": "hv", "color": colour}, fill="tozeroy")


def arrival_rate(arrival_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges (seconds) and requests per second of equal parts of the trace's duration."""
    counts, edges_s = np.histogram(arrival_s, bins=_RATE_BINS)
    return edges_s, counts / np.diff(edges_s)


def length_histogram(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges and counts of bins that are equally wide on a logarithmic axis."""
    low, high = np.log(tokens.min() - 0.5), np.log(tokens.max() + 0.5)
    edges = np.exp(np.linspace(low, high, _LENGTH_BINS + 1))
    # The rounding of log and exp must not lose the shortest or longest request.
    edges[0], edges[-1] = tokens.min() - 0.5, tokens.max() + 0.5
    return edges, np.histogram(tokens, bins=edges)[0]


def write_trace_plot(trace: Trace, title: str, path: Path) -> None:
    """Write the figure as one HTML file that needs nothing else. Raises FileError if it cannot be written."""
    page = trace_figure(trace, title).to_html(
        include_plotlyjs=True, full_html=True, config={"showSendToCloud": False, "displaylogo": False}
    )
    replace_text(path, page.replace("<head>", f"<head>{PAGE_MARK}", 1), is_page)
