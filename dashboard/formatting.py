"""Numbers as the report words them: three significant digits, units, and a dash where there is no figure."""

from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.metric import SECONDS, SHARE, Figure

DASH = "–"


def number(value: float | None) -> str:
    """Three significant digits, more where the whole part has more; whole numbers in full."""
    if value is None:
        return DASH
    if isinstance(value, int) or value == 0:
        return f"{value:,.0f}"
    exponent = int(f"{value:.2e}".partition("e")[2])
    decimals = max(2 - exponent, 0)
    return f"{value:,.{decimals}f}" if decimals < 8 else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """A duration in µs, ms or s, whichever reads best."""
    if value is None:
        return DASH
    if value == 0:
        return "0 s"
    scale, unit = time_unit(value)
    return f"{number(value * scale)} {unit}"


def time_unit(value: float | None) -> tuple[float, str]:
    """The unit in which a duration reads best, and how many of it a second has; seconds for none."""
    for scale, unit in ((1.0, "s"), (1e3, "ms")):
        if not value or abs(value) * scale >= 0.9995:
            return scale, unit
    return 1e6, "µs"


def percentile_name(key: str) -> str:
    """P99.9 for ``p999``."""
    return f"P{PERCENTILES[key]:g}"


def share(value: float | None) -> str:
    """A share of one in per cent."""
    return DASH if value is None else f"{number(float(value * 100))} %"


def worded(figure: Figure, value: float | None) -> str:
    """A figure in its unit."""
    if figure.unit == SECONDS:
        return seconds(value)
    if figure.unit == SHARE:
        return share(value)
    return DASH if value is None else f"{number(value)} {figure.unit}"
