"""How full KV memory was over time, and when it ran short."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.figures.load import add_held
from dashboard.figures.style import BLUE, GREY, VERMILION, panels, tint
from dashboard.figures.time_bins import FloatArray
from simcore.core.result import Columns
from simcore.metrics.step_bins import StepBins

_INVISIBLE = "rgba(0, 0, 0, 0)"


Blocks = int | NDArray[np.int64]
"""KV blocks of any replica, or of each."""


def blocks_of(summary: Mapping[str, Any]) -> Blocks:
    """The blocks that the replicas of a run have."""
    alike: int | None = summary["kv"]["blocks_per_replica"]
    if alike is not None:
        return alike
    pools = summary["pools"].values()
    return np.repeat([pool["kv"]["blocks_per_replica"] for pool in pools], [pool["replicas"] for pool in pools])


def kv_occupancy(steps: Columns, bins: StepBins, edges_s: FloatArray, blocks: Blocks) -> go.Figure | None:
    """Share of KV blocks in use, mean over each bin and over replicas, with the range between replicas.

    The dashed line is the capacity; marks above it are bins in which requests were preempted.
    """
    if not len(steps["start_s"]):
        return None
    shares = bins.mean(steps["used_blocks"], steps["used_blocks_at_end"]) / np.reshape(blocks, (-1, 1))
    figure = panels("time (s)", "KV blocks in use")
    if len(shares) > 1:
        lowest, highest = shares.min(axis=0), shares.max(axis=0)
        add_held(figure, edges_s, lowest, "lowest", _INVISIBLE, showlegend=False, hoverinfo="skip")
        band: dict[str, Any] = {"fill": "tonexty", "fillcolor": tint(BLUE, 0.2), "hoverinfo": "skip"}
        add_held(figure, edges_s, highest, "range between replicas", _INVISIBLE, **band)
    add_held(figure, edges_s, shares.mean(axis=0), "mean over replicas" if len(shares) > 1 else "in use", BLUE)
    figure.add_scatter(
        x=[edges_s[0], edges_s[-1]],
        y=[1, 1],
        mode="lines",
        line={"color": GREY, "dash": "dash", "width": 1.5},
        name=f"capacity: {blocks:,} blocks a replica" if isinstance(blocks, int) else "capacity of each replica",
        hoverinfo="skip",
    )
    _mark_preemptions(figure, bins.at_start(steps["preempted_requests"]), edges_s)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.1])
    figure.update_traces(hovertemplate="%{y:.1%} at %{x:.4~g} s", selector={"line.shape": "hv"})
    return figure


def _mark_preemptions(figure: go.Figure, preempted: FloatArray, edges_s: FloatArray) -> None:
    where = np.flatnonzero(preempted)
    if not len(where):
        return
    figure.add_scatter(
        x=(edges_s[where] + edges_s[where + 1]) / 2,
        y=np.full(len(where), 1.06),
        mode="markers",
        marker={"color": VERMILION, "symbol": "line-ns-open", "size": 9, "line": {"width": 1.5}},
        customdata=preempted[where],
        hovertemplate="%{customdata:,} preempted near %{x:.4~g} s<extra></extra>",
        name="preemptions",
    )
