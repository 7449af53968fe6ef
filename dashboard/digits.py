"""Figures with the digits that are known, and no more."""

from math import floor, isfinite, log10

_OF_HALF_WIDTH = 2
"""Digits of an interval that are shown; the figure ends where these do."""
_MOST = 4
"""Digits of a figure whose interval would allow more."""
_WITHOUT_INTERVAL = 3


def figure(value: float | None, half_width: float | None = None) -> str:
    """A figure that ends where the first two digits of its interval, ``value ± half_width``, end."""
    if value is None or not isfinite(value):
        return "-"
    decimals = _decimals(value, _MOST if half_width else _WITHOUT_INTERVAL)
    if half_width:
        decimals = min(decimals, _decimals(half_width, _OF_HALF_WIDTH))
    return _fixed(value, decimals)


def half_width_text(half_width: float | None) -> str:
    """Half the width of an interval, in two digits."""
    return "-" if half_width is None else _fixed(half_width, _decimals(half_width, _OF_HALF_WIDTH))


def _decimals(value: float, digits: int) -> int:
    """Places after the point, less than 0 before it, at which so many digits of ``value`` end."""
    return digits - 1 - floor(log10(abs(value))) if value else 0


def _fixed(value: float, decimals: int) -> str:
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"
