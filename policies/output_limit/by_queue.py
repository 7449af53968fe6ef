"""Shorter outputs while many wait."""

from dataclasses import dataclass

from policies.bounds import check_counts
from policies.output_limit import OutputLimit
from policies.views import RequestView, ServiceView


@dataclass(frozen=True, slots=True)
class ByQueue(OutputLimit):
    """Give ``tokens`` at most to requests that find ``waiting_requests`` or more in the queues.

    Requests of levels below ``from_priority`` are spared: 0, the most urgent level, spares nobody.

    Source: brownout (Klein et al., ICSE 2014): optional work is left out while there is too much of it.
    """

    waiting_requests: int = 100
    tokens: int = 256
    from_priority: int = 0

    def __post_init__(self) -> None:
        check_counts(self, "waiting_requests", "from_priority", least=0)
        check_counts(self, "tokens")

    def most_tokens(self, request: RequestView, service: ServiceView) -> int | None:
        """The bound, if it is busy."""
        spared = request.priority < self.from_priority
        return None if spared or service.waiting_requests < self.waiting_requests else self.tokens
