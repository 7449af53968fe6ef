"""Differences of variants to their baseline, each with its confidence interval: a forest plot."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from dashboard.comparison_wording import VERDICT_WORDS, Scale, probability, relative
from dashboard.figures.style import GREEN, GREY, VERMILION, panels
from dashboard.markup import text
from experiments.comparison import Row

_VERDICT_COLOURS = {"better": GREEN, "worse": VERMILION}
_ROW_HEIGHT, _FRAME_HEIGHT = 30, 92
_ROOM = 0.06


def forest(rows: Sequence[Row], scale: Scale, names: Mapping[str, str], baseline: str) -> go.Figure | None:
    """The differences of one metric, a line per variant and the baseline at 0; None if there are none.

    ``names`` are what variants are called for short, ``baseline`` is one of their labels.
    Filled marks are significant differences, coloured by whether they are for the better; open ones are not.
    """
    known = [row for row in rows if row.difference is not None]
    if not known:
        return None
    figure = panels(f"difference to {text(names[baseline])} ({scale.unit})", "")
    ends = [0.0]
    for row in known:
        assert row.difference is not None
        colour = _VERDICT_COLOURS.get(row.verdict, GREY)
        shown = row.difference * scale.factor
        low, high = (shown if end is None else end * scale.factor for end in (row.low, row.high))
        ends += (low, high)
        symbol = "circle" if row.verdict in _VERDICT_COLOURS else "circle-open"
        figure.add_scatter(
            x=[shown],
            y=[text(names[row.variant])],
            error_x={"array": [high - shown], "arrayminus": [shown - low], "color": colour, "thickness": 2, "width": 5},
            mode="markers",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"width": 2, "color": colour}},
            name=text(row.variant),
            hovertemplate=f"{text(row.variant)}: {scale.difference(row)} {scale.unit} ({relative(row)})<br>"
            f"{scale.interval(row) or 'no interval'}<br>{VERDICT_WORDS[row.verdict]}, "
            f"p {probability(row.p_holm)}<extra></extra>",
        )
    figure.update_yaxes(
        type="category",  # left to itself, plotly takes names that begin with "#" or digits for numbers
        categoryorder="array",
        categoryarray=[text(names[row.variant]) for row in reversed(known)],
        automargin=True,
        range=[-0.6, len(known) - 0.4],
    )
    room = _ROOM * ((max(ends) - min(ends)) or 1.0)
    figure.update_xaxes(tickformat=",~g", nticks=6, range=[min(ends) - room, max(ends) + room])
    figure.add_vline(x=0, line={"color": GREY, "width": 1.4}, layer="below")
    figure.update_layout(height=_FRAME_HEIGHT + _ROW_HEIGHT * len(known), showlegend=False, margin={"t": 14})
    return figure
