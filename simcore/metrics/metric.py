"""What a row of the table of metrics says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.measured import MeasuredRun

Summary = Mapping[str, Any]

SECONDS, SHARE = "s", "share"
"""Units that are worded in their own way: in seconds or milliseconds, and in per cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What every metric has.

    ``short`` is what tables call it, ``title`` the name spelt out, ``definition`` a clause on what exactly it is.
    ``banded`` asks for uncertainty bands.
    """

    name: str
    short: str
    title: str
    definition: str
    unit: str = SECONDS
    lower_is_better: bool = True
    banded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(Metric):
    """A time that every request has; the summary has its mean, percentiles, extremes and intervals.

    It is taken over the requests that arrived in the measured window and have it by the end of the run. ``of_requests``
    gives it from the requests table, NaN where there is none; None is for gaps between tokens, which are counted as
    they come. ``compared`` are the statistics that comparisons look at unless told otherwise. ``in_ms`` is set where it
    is a matter of milliseconds, ``drawn`` where reports draw its distribution.
    """

    of_requests: Callable[[Columns], Float64Array] | None
    compared: tuple[str, ...] = ()
    in_ms: bool = False
    drawn: bool = False

    @property
    def place(self) -> str:
        """Where in the summary it stands."""
        return f"metrics.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Metric):
    """One number of a run, at the dotted path ``place`` of its summary.

    ``of_run`` computes it; None is for figures that a section of the summary computes together with others.
    ``per_request`` is for sums over requests: what each adds, so that comparisons can draw requests anew. ``line`` is
    the line of the terminal and the table of the report that show it, none if it is empty; the terminal words it as
    ``wording`` says, and leaves it out without one;
    ``card`` asks for a card at the head of the report. ``compared`` is set where comparisons look at it unless told
    otherwise, ``needs_slo`` where it says nothing without a stated limit.
    """

    place: str
    of_run: Callable[[MeasuredRun], float | None] | None = None
    per_request: Callable[[Columns], Float64Array] | None = None
    line: str = ""
    wording: str = ""
    card: bool = False
    compared: bool = False
    needs_slo: bool = False

    def of_summary(self, summary: Summary) -> float | None:
        """The figure of a run; None where there is none."""
        if self.needs_slo and not summary["slo"]:
            return None
        found: Any = summary
        for key in self.place.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        value: float | None = found
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Figure):
    """A figure that counts what comes per second, with an interval.

    ``amounts`` tells how much came between each two successive times, the first and last of which are the ends of the
    measured window or, with ``over_arrivals``, of the window of arrivals.
    """

    amounts: Callable[[MeasuredRun, Float64Array], Float64Array]
    over_arrivals: bool = False
