"""Earliest deadline first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class EarliestDeadlineFirst(Ordering):
    """Serve the request whose first token is due first.

    The deadline is ``ttft_s`` after arrival, or what ``ttft_s_by_priority`` says for the request's level. Where
    ``ttft_s`` is not stated, it is the tightest objective for TTFT of the scenario, if that has one.

    Source: Liu and Layland, JACM 1973.
    """

    from_objectives: ClassVar[Mapping[str, str]] = {"ttft_s": "ttft_s"}
    ttft_s: float = 1.0
    ttft_s_by_priority: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for limit_s in (self.ttft_s, *self.ttft_s_by_priority.values()):
            if limit_s <= 0:
                raise ValueError(f"ttft_s is {limit_s}, expected a number greater than 0")

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The deadline."""
        return (request.arrival_s + self.ttft_s_by_priority.get(request.priority, self.ttft_s),)
