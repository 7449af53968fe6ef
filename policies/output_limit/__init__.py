"""How long outputs may be while the service is busy."""

from abc import ABC, abstractmethod

from policies.views import RequestView, ServiceView


class OutputLimit(ABC):
    """Bounds the output of each request on arrival, below what it asks for: less for each, so that all get some."""

    @abstractmethod
    def most_tokens(self, request: RequestView, service: ServiceView) -> int | None:
        """The most output tokens that it gets; None for as many as it asks for."""
