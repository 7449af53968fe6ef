"""Earliest deadline first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import LONGEST_S, SHORTEST_S, check_levels, check_seconds, check_value
from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class EarliestDeadlineFirst(Ordering):
    """Serve the request whose first token is due first.

    The deadline is ``ttft_s`` after arrival, or what ``ttft_s_by_priority`` says for the request's level. Where
    ``ttft_s`` is not stated, it is the tightest objective for TTFT of the scenario, if that has one.

    Source: Liu and Layland, JACM 1973.
    """

    keyed_by: ClassVar[Mapping[str, str]] = {"ttft_s_by_priority": "level"}
    from_objectives: ClassVar[Mapping[str, str]] = {"ttft_s": "ttft_s"}
    ttft_s: float = 1.0
    ttft_s_by_priority: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_seconds(self, "ttft_s")
        check_levels("ttft_s_by_priority", self.ttft_s_by_priority)
        for level, limit_s in self.ttft_s_by_priority.items():
            check_value(f"ttft_s_by_priority.{level}", limit_s, SHORTEST_S, LONGEST_S)

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The deadline."""
        return (request.arrival_s + self.ttft_s_by_priority.get(request.priority, self.ttft_s),)
