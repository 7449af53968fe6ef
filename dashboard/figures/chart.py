"""What a figure of published values beside ours shows, apart from how it is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name. ``low`` and ``high`` are the ends of their intervals."""

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    published: bool = False
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over a common axis: lines over numbers, or bars over names."""

    title: str
    x_title: str
    y_title: str
    series: Sequence[Series]
    kind: Literal["lines", "bars"] = "lines"
    log_y: bool = False
    log_x: bool = False
