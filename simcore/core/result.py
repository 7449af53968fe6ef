"""What a run leaves in memory: its scenario in full, the summary, and two tables of columns."""

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Result:
    """A finished simulation.

    ``scenario`` is the scenario with every default filled in. ``summary`` is what ``summary.json`` holds. ``requests``
    has one row per request in order of arrival, ``steps`` one row per run of consecutive steps of the same batch in
    order of time; both are dictionaries of equally long arrays, so that ``pandas.DataFrame(result.requests)`` works.
    Times are seconds from the start of the run; what never came to be is NaN. ``token_gaps`` is the distribution of
    the gaps between tokens (ITL), thinned out: ``value_s``, ascending, and the ``share`` of all gaps up to it.
    ``transfers`` has one row per transfer between GPU memory and what lies below, ``fleet`` one per phase of a replica,
    ``service`` one per span of time with what became of its requests.
    """

    scenario: dict[str, Any]
    summary: dict[str, Any]
    requests: Columns
    steps: Columns
    token_gaps: Columns
    transfers: Columns = field(default_factory=dict)
    fleet: Columns = field(default_factory=dict)
    service: Columns = field(default_factory=dict)

    def __str__(self) -> str:
        counts, metrics = self.summary["counts"], self.summary["metrics"]
        return f"{counts['finished']} of {counts['arrived']} requests finished; mean TTFT {metrics['ttft_s']['mean']} s"
