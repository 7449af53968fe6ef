"""What variants cost against how long their requests take."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from dashboard.comparison_wording import scale_of
from dashboard.figures.style import BLUE, GREY, panels
from dashboard.markup import text
from experiments.comparison import Row


def cost_against_latency(
    costs: Sequence[Row], latencies: Sequence[Row], names: Mapping[str, str], baseline: str
) -> go.Figure | None:
    """A dot per variant, the baseline's in grey; better is lower and further left. None if costs are all the same.

    ``costs`` and ``latencies`` are the rows of one metric each; ``names``, what variants are called, are by label.
    """
    known = {row.variant: row.value for row in latencies if row.value is not None}
    dots = [(row.variant, known[row.variant], row.value) for row in costs if row.variant in known and row.value]
    if len({cost for _, _, cost in dots}) < 2:
        return None
    scale = scale_of(latencies)
    figure = panels(f"{latencies[0].title} ({scale.unit})", f"{costs[0].title} ({costs[0].unit})")
    figure.add_scatter(
        x=[value * scale.factor for _, value, _ in dots],
        y=[cost for _, _, cost in dots],
        mode="markers+text",
        text=[text(names[variant]) for variant, _, _ in dots],
        textposition="top center",
        marker={"size": 11, "color": [GREY if variant == baseline else BLUE for variant, _, _ in dots]},
        hovertemplate="%{text}: %{y:.4~g} at %{x:.4~g} " + scale.unit + "<extra></extra>",
        cliponaxis=False,
    )
    figure.update_xaxes(rangemode="tozero")
    figure.update_layout(showlegend=False, height=360)
    return figure
