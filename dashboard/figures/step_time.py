"""Where the time of a step goes, one bar per setup: the kernels and the host, dearest first."""

from collections.abc import Mapping

import plotly.graph_objects as go

from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels
from dashboard.markup import text
from simcore.build.explanation import Explanation

# With two more of the palette of Okabe and Ito.
_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, "#56B4E9", "#CC79A7")
_FRAME_HEIGHT, _BAR_HEIGHT = 120, 52


def step_time(steps: Mapping[str, Explanation]) -> go.Figure:
    """Milliseconds of a step by operator; operators beyond the dearest six are drawn together."""
    totals: dict[str, float] = {}
    for step in steps.values():
        for operator in step.operators:
            totals[operator.name] = totals.get(operator.name, 0.0) + operator.seconds
    dearest = sorted(totals, key=lambda name: (-totals[name], name))[: len(_COLOURS)]
    figure = panels("time of a step (ms)", "")
    names = [text(name) for name in steps]
    for name, colour in [*zip(dearest, _COLOURS, strict=False), ("others", GREY)]:
        values_ms = [
            sum(
                operator.seconds * 1e3
                for operator in step.operators
                if (operator.name if operator.name in dearest else "others") == name
            )
            for step in steps.values()
        ]
        if any(values_ms):
            figure.add_bar(
                x=values_ms,
                y=names,
                orientation="h",
                name=name.replace("_", " "),
                marker={"color": colour},
                hovertemplate="%{y}: %{x:,.4~g} ms",
            )
    figure.update_layout(
        barmode="stack", height=_FRAME_HEIGHT + _BAR_HEIGHT * len(names), bargap=0.35, legend={"traceorder": "normal"}
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    figure.update_xaxes(rangemode="tozero")
    return figure
