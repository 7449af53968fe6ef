import pytest

from dashboard.formatting import number, seconds, share


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0, "0"),
        (0.0, "0"),
        (12, "12"),
        (1234567, "1,234,567"),
        (1.2345, "1.23"),
        (12.345, "12.3"),
        (1234.5, "1,234"),
        (0.0012345, "0.00123"),
        (9.999, "10.0"),
        (-0.5, "-0.500"),
        (1.5e-12, "1.5e-12"),
    ],
)
def test_numbers(value, expected):
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0.0, "0 s"),
        (1.5, "1.50 s"),
        (3600.0, "3,600 s"),
        (0.0123, "12.3 ms"),
        (0.9999, "1.00 s"),
        (2.5e-5, "25.0 µs"),
        (-0.25, "-250 ms"),
    ],
)
def test_durations(value, expected):
    assert seconds(value) == expected


def test_shares():
    assert (share(None), share(1.0), share(0.0), share(0.1234)) == ("–", "100 %", "0 %", "12.3 %")
