"""How every figure looks: colours that the colour-blind can tell apart, quiet axes, no box around anything."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

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
_PANEL_GAP = 0.09
"""Between panels, as a share of the height of them all."""
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
    """An empty figure of one panel per y title, stacked over a common x axis; ``place`` says which a trace is in."""
    # All at once: plotly takes a hundredth of a second for every single change, and longer for its own subplots.
    return go.Figure(
        layout={
            **_axes(x_title, y_titles),
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
    )


def place(panel: int) -> dict[str, str]:
    """The axes of a panel, counted from 1 at the top: arguments of a trace."""
    number = "" if panel == 1 else str(panel)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def _axes(x_title: str, y_titles: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The axes of all panels; only the lowest names its x axis and its ticks."""
    axes, lowest = {}, len(y_titles)
    height = (1.0 - _PANEL_GAP * (lowest - 1)) / lowest
    for panel, y_title in enumerate(y_titles, start=1):
        x, y = place(panel).values()
        below = (lowest - panel) * (height + _PANEL_GAP)
        inner = {"matches": place(lowest)["xaxis"], "showticklabels": False, "title": _TITLE}
        last = {"title": _title(x_title)}
        axes[x.replace("x", "xaxis")] = (
            {"anchor": y, "domain": [0.0, 1.0]} | _X_AXIS | (inner if panel < lowest else last)
        )
        axes[y.replace("y", "yaxis")] = (
            {"anchor": x, "domain": [below, min(below + height, 1.0)]} | _Y_AXIS | {"title": _title(y_title)}
        )
    return axes


def _title(words: str) -> dict[str, Any]:
    return _TITLE | {"text": words, "standoff": 8}


def tint(colour: str, opacity: float = 0.16) -> str:
    """A colour of the palette, thinned to lie under a line of it."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def shade(figure: go.Figure, from_s: float, to_s: float) -> None:
    """Grey out a stretch of time in all panels."""
    for shape in stretch(figure, from_s, to_s, tint(GREY, 0.14)):
        figure.add_shape(shape)


def stretch(figure: go.Figure, from_s: float, to_s: float, colour: str) -> list[dict[str, Any]]:
    """The shapes that lay a stretch of time below all panels in a colour."""
    colouring = {"type": "rect", "fillcolor": colour, "line": {"width": 0}, "layer": "below"}
    found = []
    for axis in figure.select_yaxes():
        x, y = axis.anchor, axis.plotly_name.replace("yaxis", "y")
        found.append(colouring | {"xref": x, "x0": from_s, "x1": to_s, "yref": f"{y} domain", "y0": 0, "y1": 1})
    return found
