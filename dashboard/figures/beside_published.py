"""Published values beside ours: what was published is grey and hollow, whatever is ours is coloured."""

import plotly.graph_objects as go

from dashboard.figures.chart import Chart, Series
from dashboard.figures.style import BLUE, GREEN, GREY, ORANGE, VERMILION, panels, tint
from dashboard.markup import text

_COLOURS = (BLUE, VERMILION, GREEN, ORANGE)
_DASHES = ("solid", "dash", "dot", "dashdot")


def beside_published(chart: Chart) -> go.Figure:
    """Draw a chart."""
    figure = panels(text(chart.x_title), text(chart.y_title))
    ours = [series for series in chart.series if not series.published]
    for series in chart.series:
        place = ours.index(series) if series in ours else [s for s in chart.series if s.published].index(series)
        colour = GREY if series.published else _COLOURS[place % len(_COLOURS)]
        name = text(f"{series.name}, published" if series.published else series.name)
        draw = _bars if chart.kind == "bars" else _line
        draw(figure, series, name, colour, place)
    figure.update_layout(barmode="group", height=360)
    if chart.kind == "bars":
        figure.update_xaxes(type="category", automargin=True)
    if chart.log_x:
        figure.update_xaxes(type="log", tickformat="~g")
    if chart.log_y:
        figure.update_yaxes(type="log", tickformat="~g", rangemode="normal")
    return figure


def _bars(figure: go.Figure, series: Series, name: str, colour: str, place: int) -> None:
    figure.add_bar(
        x=[text(x) for x in series.x],
        y=list(series.y),
        name=name,
        marker={"color": tint(GREY) if series.published else colour, "line": {"color": colour, "width": 1.5}},
        error_y=_intervals(series, colour),
        hovertemplate="%{x}: %{y:,.4~g}",
    )


def _line(figure: go.Figure, series: Series, name: str, colour: str, place: int) -> None:
    figure.add_scatter(
        x=list(series.x),
        y=list(series.y),
        name=name,
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": "dot" if series.published else _DASHES[place // len(_COLOURS) % 4]},
        marker={"symbol": "circle-open" if series.published else "circle", "size": 8, "color": colour},
        error_y=_intervals(series, colour),
        hovertemplate="%{x:,.4~g}: %{y:,.4~g}",
    )


def _intervals(series: Series, colour: str) -> dict[str, object] | None:
    if series.low is None or series.high is None:
        return None
    return {
        "array": [high - y for high, y in zip(series.high, series.y, strict=True)],
        "arrayminus": [y - low for low, y in zip(series.low, series.y, strict=True)],
        "color": colour,
        "thickness": 1.5,
        "width": 4,
    }
