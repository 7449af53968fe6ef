"""Time: integer nanoseconds inside, seconds at the edges."""

NS_PER_S = 1_000_000_000


def to_ns(seconds: float) -> int:
    """Seconds to the nearest nanosecond."""
    return round(seconds * NS_PER_S)


def to_s(nanoseconds: int) -> float:
    """Nanoseconds to seconds."""
    return nanoseconds / NS_PER_S
