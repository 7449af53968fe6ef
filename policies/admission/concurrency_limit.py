"""A bound on requests in flight."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from policies.admission import Admission
from policies.bounds import check_counts
from policies.by_tenant import Count, amount_of, differ
from policies.views import RequestView, ServiceView

_MAX_REQUESTS = 256


@dataclass(slots=True)
class ConcurrencyLimit(Admission):
    """Reject a request that finds ``max_requests`` let in and not finished, in all or of its tenant.

    A limit may be by tenant, ``{gold: 20}``; who is not named there has the default.

    Source: the bound on requests in process of gateways, such as nginx's limit_conn.
    """

    keyed_by: ClassVar[Mapping[str, str]] = {"max_requests": "tenant"}
    max_requests: Count = _MAX_REQUESTS
    per_tenant: bool = False
    _in_flight: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "max_requests")

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether too many are in flight."""
        most = amount_of(self.max_requests, request.tenant, _MAX_REQUESTS)
        full = self._in_flight.get(self._party(request), 0) >= most
        return "too many requests in flight" if full else None

    def accepted(self, request: RequestView, now_s: float) -> None:
        """One more."""
        self._in_flight[self._party(request)] = self._in_flight.get(self._party(request), 0) + 1

    def finished(self, request: RequestView, ttft_s: float, now_s: float) -> None:
        """One less."""
        self._in_flight[self._party(request)] -= 1

    def dropped(self, request: RequestView, now_s: float) -> None:
        """One less."""
        self._in_flight[self._party(request)] -= 1

    def _party(self, request: RequestView) -> str:
        return request.tenant if self.per_tenant or differ(self.max_requests) else ""
