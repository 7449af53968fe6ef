"""At which times something is slower than it should be."""

from bisect import bisect_right
from collections.abc import Iterable
from math import prod

from policies.horizon import FOREVER

Window = tuple[int, int, float]
"""From when, until when, in nanoseconds, and by which factor."""


class Pace:
    """A factor over time, 1 outside of all windows; where windows overlap, their factors multiply."""

    __slots__ = ("_changes_ns", "_factors")

    def __init__(self, windows: Iterable[Window]) -> None:
        windows = sorted(windows)
        times_ns = sorted({time_ns for start_ns, end_ns, _ in windows for time_ns in (start_ns, end_ns)})
        self._changes_ns = times_ns
        self._factors = [1.0] + [
            prod(factor for start_ns, end_ns, factor in windows if start_ns <= time_ns < end_ns) for time_ns in times_ns
        ]

    def at(self, time_ns: int) -> tuple[float, int]:
        """The factor at a time, and until when it stands."""
        place = bisect_right(self._changes_ns, time_ns)
        return self._factors[place], self._changes_ns[place] if place < len(self._changes_ns) else FOREVER

    @property
    def changes(self) -> list[tuple[int, float]]:
        """When the factor changes, and to what."""
        return list(zip(self._changes_ns, self._factors[1:], strict=True))
