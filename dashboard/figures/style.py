"""How every figure looks: colours that the colour-blind can tell apart, quiet axes, no box around anything."""

from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

# The palette of Okabe and Ito, "Color Universal Design" (2008), without its yellow, which white swallows.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
GREY = "#7A828C"

_GRID = "rgba(122, 130, 140, 0.22)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_FONT_SIZE = 12.5
_PANEL_HEIGHT, _MARGIN_HEIGHT = 225, 85
_X_AXIS = {
    "showgrid": False,
    "zeroline": False,
    "linecolor": GREY,
    "ticks": "outside",
    "tickcolor": GREY,
    "ticklen": 4,
}
_TITLE = {"font": {"size": _FONT_SIZE}}
_Y_AXIS = {"gridcolor": _GRID, "zeroline": False, "rangemode": "tozero"}


def panels(x_title: str, *y_titles: str) -> go.Figure:
    """An empty figure of one panel per y title, stacked over a common x axis."""
    figure = make_subplots(rows=len(y_titles), cols=1, shared_xaxes=True, vertical_spacing=0.09)
    axes = figure.layout.to_plotly_json()
    for row, y_title in enumerate(y_titles, start=1):
        number = "" if row == 1 else str(row)
        axes[f"xaxis{number}"] |= _X_AXIS | {"title": _title(x_title) if row == len(y_titles) else _TITLE}
        axes[f"yaxis{number}"] |= _Y_AXIS | {"title": _title(y_title)}
    # All at once: plotly takes a hundredth of a second for every single change.
    figure.layout = {
        **axes,
        "template": go.layout.Template(),
        "height": _MARGIN_HEIGHT + _PANEL_HEIGHT * len(y_titles),
        "margin": {"l": 64, "r": 14, "t": 34, "b": 50},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"family": _FONT, "size": _FONT_SIZE, "color": "#3a424c"},
        "hovermode": "x unified" if len(y_titles) > 1 else "closest",
        "hoverlabel": {"bgcolor": "#ffffff", "font": {"color": "#1f2630"}},
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "bgcolor": "rgba(0, 0, 0, 0)"},
        "modebar": {"bgcolor": "rgba(0, 0, 0, 0)", "color": "rgba(122, 130, 140, 0.6)", "activecolor": BLUE},
        "showlegend": True,
    }
    return figure


def _title(words: str) -> dict[str, Any]:
    return _TITLE | {"text": words, "standoff": 8}


def tint(colour: str, opacity: float = 0.16) -> str:
    """A colour of the palette, thinned to lie under a line of it."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def shade(figure: go.Figure, from_s: float, to_s: float) -> None:
    """Grey out a stretch of time in all panels."""
    figure.add_vrect(x0=from_s, x1=to_s, fillcolor=tint(GREY, 0.14), line_width=0, layer="below")
