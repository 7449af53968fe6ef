"""What a gateway does for requests beside routing them."""

from dataclasses import dataclass, field

from policies.horizon import FOREVER
from policies.output_limit import OutputLimit
from policies.views import ServiceView
from simcore.core.request import ReadOnlyRequest, Request
from simcore.service.ejections import Ejections
from simcore.service.gateway_queue import GatewayQueue
from simcore.service.hedges import Hedges, as_it_came
from simcore.service.mortal_replica import MortalReplica
from simcore.service.resending import Resending


@dataclass(slots=True)
class Gateway:
    """Sends requests again that lost their replica, sends copies, ejects replicas, bounds outputs, and has a queue.

    Each part may be missing.
    """

    resending: Resending | None = None
    hedges: Hedges | None = None
    ejections: Ejections | None = None
    output_limit: OutputLimit | None = None
    queue: GatewayQueue | None = None
    shortened: int = 0
    cut_tokens: int = 0
    _asked_ns: dict[int, int] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether it wants to know of the end of each request."""
        return self.hedges is not None or self.ejections is not None

    def connect(self) -> None:
        """Let the parts know of each other."""
        resending, hedges = self.resending, self.hedges
        if hedges is not None:
            hedges.on_withdrawn = self._withdrawn
            if resending is not None:
                resending.goes_on = hedges.goes_on

    def bounded(self, request: Request, output_tokens: int, service: ServiceView) -> int:
        """How much a request that arrives generates of what it would."""
        assert self.output_limit is not None
        most_tokens = self.output_limit.most_tokens(ReadOnlyRequest(request), service)
        if most_tokens is None:
            return output_tokens
        request.max_output_tokens = min(request.max_output_tokens, most_tokens)
        if output_tokens > most_tokens:
            self.shortened += 1
            self.cut_tokens += output_tokens - most_tokens
        return min(output_tokens, most_tokens)

    def ended(self, request: Request, place: int, ttft_s: float | None) -> None:
        """Take note that a request is complete at a place, with its first token after so long, or dropped (None)."""
        if self.hedges is not None:
            self.hedges.ended(request)
            if ttft_s is not None:
                self.hedges.policy.answered(ReadOnlyRequest(request), ttft_s)
        if self.ejections is not None:
            self.ejections.judge(place, ttft_s)

    def asks_again(self, request: Request, replica: MortalReplica, place: int, now_ns: int) -> bool:
        """Have a request sent anew whose client has waited too long for a token; False if there is no such attempt.

        Its client waits as long for the new one as for the first.
        """
        resending = self.resending
        if resending is None or resending.is_spent(request):
            return False
        again, asks_ns = as_it_came(request), now_ns + resending.next_delay_ns(request)
        later_ns = asks_ns - self._asked_ns.get(request.number, request.arrival_ns)
        again.first_token_due_ns += later_ns
        again.due_ns = min(again.due_ns + later_ns, FOREVER)
        self._asked_ns[request.number] = asks_ns
        output_tokens = replica.take_back(request)
        if self.hedges is not None:
            self.hedges.abandon(request)
        if self.ejections is not None:
            self.ejections.judge(place, None)
        resending.asked_again(again, output_tokens, replica)
        return True

    def close(self) -> None:
        """Leave one copy of each request, as the end of the run cuts it off."""
        if self.hedges is not None:
            self.hedges.close()

    def _withdrawn(self, request: Request, replica: MortalReplica, place: int) -> None:
        if self.resending is not None:
            self.resending.left(request, replica)
        if self.ejections is not None:
            self.ejections.judge(place, None)
