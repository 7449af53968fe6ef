"""What a paper's module states: which cells to measure, and how one is measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.figures.chart import Chart

Figures = Mapping[str, float]
"""What one cell gave, by the names that claims use."""
PUBLISHED = "published"
"""The setup that is the paper's own; all others are axes that it did not show."""


@dataclass(frozen=True, slots=True)
class Size:
    """How long each run is, how often it is repeated with other arrivals, and to what factor rates are found."""

    requests: int
    seeds: int
    precision: float = 1.03


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement: a system in a setup, with the arrivals of a seed.

    Cells of one setup and seed have the same arrivals, whatever their system.
    """

    setup: str
    system: str
    seed: int
    size: Size


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of all cells, by setup and system, one entry for each seed."""

    figures: Mapping[tuple[str, str], Sequence[Figures]]

    def values(self, setup: str, system: str, figure: str) -> list[float]:
        """One figure of a cell over its seeds."""
        return [figures[figure] for figures in self.figures[setup, system]]

    def mean(self, setup: str, system: str, figure: str) -> float:
        """The mean of a figure over the seeds."""
        values = self.values(setup, system, figure)
        return sum(values) / len(values)


@dataclass(frozen=True, slots=True)
class Study:
    """One paper's experiment.

    ``cells`` names the systems of each setup, the paper's own setup first. ``measure`` runs one cell. ``charts`` draws
    the paper's figures of what was measured and of the ``curves`` in its data file. ``smoke`` is a size at which the
    direction shows within seconds; then the published setup alone is run.
    """

    cells: Mapping[str, Sequence[str]]
    measure: Callable[[Cell], Figures]
    charts: Callable[[Measured, Mapping[str, Any]], Sequence[Chart]]
    full: Size
    smoke: Size
