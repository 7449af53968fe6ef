"""Figures end where their intervals do."""

import pytest

from dashboard.digits import figure, half_width_text


@pytest.mark.parametrize(
    ("value", "half_width", "shown"),
    [
        (9.7642, 0.17, "9.76"),
        (2.1413, 0.07, "2.141"),
        (2.1413, 0.7, "2.14"),
        (0.06312, 0.0026, "0.0631"),
        (11606.3, 251.0, "11,610"),
        (11606.3, 0.2, "11,610"),
        (11606.3, None, "11,600"),
        (0.2443, None, "0.244"),
        (12.0, 30.0, "12"),
        (0.0, None, "0"),
        (5.0, 0.0, "5.00"),
        (None, None, "-"),
        (float("nan"), None, "-"),
    ],
)
def test_a_figure_has_the_digits_that_its_interval_supports(value, half_width, shown):
    assert figure(value, half_width) == shown


@pytest.mark.parametrize(
    ("half_width", "shown"), [(0.1743, "0.17"), (0.07, "0.070"), (251.0, "250"), (0.0, "0"), (None, "-")]
)
def test_half_widths_have_two_digits(half_width, shown):
    assert half_width_text(half_width) == shown
