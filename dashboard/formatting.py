"""Numbers as the report words them: three significant digits, units, and a dash where there is no figure."""

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
    for scale, unit in ((1.0, "s"), (1e3, "ms")):
        if abs(value) * scale >= 0.9995:
            return f"{number(value * scale)} {unit}"
    return f"{number(value * 1e6)} µs"


def share(value: float | None) -> str:
    """A share of one in per cent."""
    return DASH if value is None else f"{number(float(value * 100))} %"
