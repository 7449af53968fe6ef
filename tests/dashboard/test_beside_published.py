"""Published values beside ours."""

import pytest

from dashboard.figures.beside_published import beside_published
from dashboard.figures.chart import Chart, Series
from dashboard.figures.style import GREY

SERIES = (
    Series("rate", (1.0, 2.0), (3.0, 4.0), published=True),
    Series("rate", (1.0, 2.0), (3.5, 4.5), low=(3.0, 4.0), high=(4.0, 6.0)),
)


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_what_was_published_is_grey_and_named_so(kind):
    published, ours = beside_published(Chart("", "load", "rate (1/s)", SERIES, kind)).data
    assert published.name == "rate, published"
    assert ours.name == "rate"
    colours = [trace.line.color if kind == "lines" else trace.marker.line.color for trace in (published, ours)]
    assert colours[0] == GREY != colours[1]
    assert list(ours.error_y.array) == [0.5, 1.5]
    assert list(ours.error_y.arrayminus) == [0.5, 0.5]


def test_axes_are_as_stated():
    figure = beside_published(Chart("", "load", "rate (1/s)", SERIES, log_x=True, log_y=True))
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert beside_published(Chart("", "x", "y", SERIES, "bars")).layout.xaxis.type == "category"
