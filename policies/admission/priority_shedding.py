"""The least urgent go first."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.admission import Admission
from policies.bounds import check_counts, check_levels
from policies.views import RequestView, ServiceView


@dataclass(frozen=True, slots=True)
class PriorityShedding(Admission):
    """Reject a request that finds as many in the queues as its level bears, ``waiting_requests`` by level.

    A level that is not named bears as many as the next more urgent one that is; with none such it bears any number.

    Source: load shedding by criticality (Beyer et al., Site Reliability Engineering, 2016, chapter 21).
    """

    waiting_requests: Mapping[int, int] = field(default_factory=lambda: {1: 100, 2: 20})

    def __post_init__(self) -> None:
        check_levels("waiting_requests", self.waiting_requests)
        check_counts(self, "waiting_requests", least=0)

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether it is too busy for the request's level."""
        named = [level for level in self.waiting_requests if level <= request.priority]
        if not named or service.waiting_requests < self.waiting_requests[max(named)]:
            return None
        return "it is too busy for this priority"
