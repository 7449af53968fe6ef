"""Steps as bars along time, memory as a map, and the life of one request."""

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kv_occupancy import Blocks
from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels
from dashboard.figures.time_bins import FloatArray
from simcore.core.result import Columns
from simcore.metrics.step_bins import StepBins

MOST_STEPS = 2000
"""More bars than these cannot be told apart."""
_KINDS = {
    "preempting": VERMILION,
    "prompts and decodes": ORANGE,
    "prompts alone": GREEN,
    "decodes alone": BLUE,
}
_FRAME_HEIGHT, _LANE_HEIGHT = 130, 46


def steps_within(steps: Columns, from_s: float, to_s: float) -> Columns:
    """The rows of the step table that reach into a stretch of time, the first ``MOST_STEPS`` of them."""
    chosen = np.flatnonzero((steps["end_s"] > from_s) & (steps["start_s"] < to_s))[:MOST_STEPS]
    return {name: values[chosen] for name, values in steps.items()}


def step_bars(steps: Columns, from_s: float, to_s: float) -> go.Figure | None:
    """A lane per replica; rows of like decode steps are one bar. Colours tell what steps do; None without steps."""
    shown = steps_within(steps, from_s, to_s)
    if not len(shown["start_s"]):
        return None
    prompts, decodes = shown["prefill_tokens"] > 0, shown["decoding_requests"] > 0
    preempting = shown["preempted_requests"] > 0
    kinds = np.select([preempting, prompts & decodes, prompts], list(_KINDS)[:3], "decodes alone")
    figure = panels("time (s)", "")
    for kind, colour in _KINDS.items():
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            columns = ("steps", "prefill_tokens", "decoding_requests", "used_blocks", "preempted_requests")
            figure.add_bar(
                x=(shown["end_s"] - shown["start_s"])[rows],
                base=shown["start_s"][rows],
                y=[f"replica {replica}" for replica in shown["replica"][rows]],
                orientation="h",
                name=kind,
                marker={"color": colour, "line": {"width": 0}},
                customdata=np.stack([shown[name][rows] for name in columns], axis=1),
                hovertemplate="%{base:.4~f} s for %{x:.4~g} s<br>%{customdata[0]:,} steps, %{customdata[1]:,} prompt "
                "tokens, %{customdata[2]:,} decoding<br>%{customdata[3]:,} KV blocks, %{customdata[4]:,} preempted",
            )
    lanes = len(np.unique(shown["replica"]))
    figure.update_layout(barmode="overlay", bargap=0.3, height=_FRAME_HEIGHT + _LANE_HEIGHT * lanes)
    figure.update_xaxes(range=[from_s, to_s])
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    return figure


def kv_map(steps: Columns, bins: StepBins, edges_s: FloatArray, blocks: Blocks) -> go.Figure | None:
    """The share of each replica's KV blocks in use, a row per replica, dark where memory is full."""
    if not len(steps["start_s"]):
        return None
    shares = bins.mean(steps["used_blocks"], steps["used_blocks_at_end"]) / np.reshape(blocks, (-1, 1))
    figure = panels("time (s)", "")
    figure.add_heatmap(
        x=edges_s,
        y=[f"replica {replica}" for replica in range(len(shares))],
        z=shares,
        zmin=0,
        zmax=1,
        colorscale="Cividis",
        reversescale=True,
        colorbar={"tickformat": ".0%", "title": {"text": "in use"}, "thickness": 12},
        hovertemplate="%{y}: %{z:.1%} at %{x:.4~g} s<extra></extra>",
    )
    figure.update_layout(height=_FRAME_HEIGHT + _LANE_HEIGHT * len(shares), showlegend=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    return figure


def request_map(requests: Columns) -> go.Figure | None:
    """A dot per request: when it arrived, and how long it took until its last token; for choosing one."""
    known = np.flatnonzero(np.isfinite(requests["e2e_s"]))
    if not len(known):
        return None
    figure = panels("arrival (s)", "E2E (s)")
    figure.add_scattergl(
        x=requests["arrival_s"][known],
        y=requests["e2e_s"][known],
        mode="markers",
        marker={"color": BLUE, "size": 6, "opacity": 0.55},
        customdata=np.stack([requests["request_id"][known], requests["ttft_s"][known]], axis=1),
        hovertemplate="request %{customdata[0]}: TTFT %{customdata[1]:.4~g} s, E2E %{y:.4~g} s<extra></extra>",
        name="requests",
    )
    figure.update_layout(showlegend=False, height=300)
    return figure


def request_life(request: dict[str, float]) -> go.Figure:
    """One request from its arrival: waiting, its prompt, its output, as far as it came (seconds)."""
    figure = panels("time since the run began (s)", "")
    moments = [request[name] for name in ("arrival_s", "first_scheduled_s", "first_token_s", "end_s")]
    phases = (("waiting", GREY), ("prompt", GREEN), ("output", BLUE))
    for (name, colour), start_s, end_s in zip(phases, moments, moments[1:], strict=False):
        if np.isfinite(start_s) and np.isfinite(end_s):
            figure.add_bar(
                x=[end_s - start_s],
                base=[start_s],
                y=[""],
                orientation="h",
                name=name,
                marker={"color": colour},
                hovertemplate=f"{name}: %{{x:.4~g}} s from %{{base:.4~f}} s",
            )
    figure.update_layout(barmode="overlay", height=170)
    figure.update_yaxes(showgrid=False, showticklabels=False)
    return figure
