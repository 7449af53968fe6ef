"""Operators on the roofline of their accelerator."""

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREY, ORANGE, VERMILION, panels
from simcore.build.explanation import Explanation

_NAMED_FROM = 0.08
"""Share of the step from which an operator's name is written beside its dot; the others tell theirs when pointed at."""
_COLOURS = {"calibrated": BLUE, "imported": ORANGE, "roofline": VERMILION}

_PLACES = ("middle right", "middle left", "top center", "bottom center")
"""Where names stand, the largest share first, so that operators of like intensity do not hide each other's."""


def roofline(step: Explanation) -> go.Figure | None:
    """Arithmetic rate over arithmetic intensity, a dot per operator, its size by its share of the step's time.

    A chunk that adds nothing to the launch of the decodes beside it has no rate.
    """
    shown = [operator for operator in step.operators if operator.flops and operator.bytes and operator.seconds]
    if not shown:
        return None
    figure = panels("arithmetic intensity, FLOP per byte (logarithmic)", "TFLOP/s (logarithmic)")
    intensities = [operator.flops / operator.bytes for operator in shown]
    ridge = step.peak_flops_per_s / step.peak_bytes_per_s
    reach = np.array([min([*intensities, ridge]) / 2, ridge, max([*intensities, ridge]) * 2])
    figure.add_scatter(
        x=reach,
        y=np.minimum(reach * step.peak_bytes_per_s, step.peak_flops_per_s) / 1e12,
        mode="lines",
        line={"color": GREY, "width": 1.5},
        name="datasheet peak",
        hoverinfo="skip",
    )
    for source, colour in _COLOURS.items():
        chosen = [(x, operator) for x, operator in zip(intensities, shown, strict=True) if operator.source == source]
        if chosen:
            shares = [operator.seconds / step.seconds for _, operator in chosen]
            figure.add_scatter(
                x=[x for x, _ in chosen],
                y=[operator.flops / operator.seconds / 1e12 for _, operator in chosen],
                mode="markers+text",
                text=[
                    operator.name.replace("_", " ") if share >= _NAMED_FROM else ""
                    for share, (_, operator) in zip(shares, chosen, strict=True)
                ],
                textposition=[_PLACES[rank % len(_PLACES)] for rank in _ranks(shares)],
                marker={"color": colour, "size": [8 + 40 * part**0.5 for part in shares], "opacity": 0.7},
                customdata=[(operator.name, share) for share, (_, operator) in zip(shares, chosen, strict=True)],
                hovertemplate="%{customdata[0]}: %{y:,.3g} TFLOP/s at %{x:,.3g} FLOP/B, "
                "%{customdata[1]:.1%} of the step",
                name=source,
            )
    figure.update_layout(height=420)
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


def _ranks(shares: list[float]) -> list[int]:
    """The place of each share when they are ordered, the largest first."""
    order = sorted(range(len(shares)), key=lambda place: -shares[place])
    return [order.index(place) for place in range(len(shares))]
