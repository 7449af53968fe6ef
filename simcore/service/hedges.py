"""Copies of requests that have no token yet, sent to other replicas."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from policies.hedging import Hedging
from simcore.core.clock import to_ns
from simcore.core.request import UNSET, ReadOnlyRequest, Request
from simcore.service.clock import Clock
from simcore.service.mortal_replica import MortalReplica
from simcore.service.stage import Stage


@dataclass(frozen=True, slots=True)
class _Copy:
    """One of the two: the request as one replica has it."""

    request: Request
    replica: MortalReplica
    place: int


@dataclass(slots=True)
class Hedges:
    """Sends copies of requests, and withdraws the one of two that is not the first to have a token.

    A copy is the same request with nothing computed. Nothing of the one that is withdrawn reaches anybody. Who loses
    its replica while the other is there does not go elsewhere. A request that was sent again after that has no copies.
    """

    clock: Clock
    stage: Stage
    policy: Hedging
    on_sent: Callable[[Request, MortalReplica], None] = lambda request, replica: None
    on_withdrawn: Callable[[Request, MortalReplica, int], None] = lambda request, replica, place: None
    sent: int = 0
    won: int = 0
    _pairs: dict[int, tuple[_Copy, _Copy]] = field(default_factory=dict)

    def begin(self, request: Request, output_tokens: int, place: int) -> None:
        """Watch a request that has just been sent to the replica at a place."""
        delay_s = self.policy.delay_s(ReadOnlyRequest(request))
        if delay_s is not None:
            replica = self.stage.replicas[place]
            assert isinstance(replica, MortalReplica)
            first = _Copy(request, replica, place)
            self.clock.call_at(self.clock.now_ns + to_ns(delay_s), partial(self._hedge, first, output_tokens))

    def ended(self, request: Request) -> None:
        """Withdraw the copy, if there is one, of a request that is over."""
        if request.number in self._pairs:
            self._decide(request)

    def abandon(self, request: Request) -> None:
        """Withdraw the other copy, if there is one, of a request that was taken from its replica."""
        pair = self._pairs.pop(request.number, None)
        if pair is not None:
            self._withdraw(next(copy for copy in pair if copy.request is not request))

    def goes_on(self, request: Request, lost: MortalReplica) -> bool:
        """Whether a request that has lost its replica is on another one as well."""
        pair = self._pairs.pop(request.number, None)
        if pair is None:
            return False
        kept = next(copy for copy in pair if copy.replica is not lost)
        kept.replica.awaited.pop(request.number, None)
        return True

    def close(self) -> None:
        """Withdraw the second copies of all that the end of the run cuts off."""
        for number in list(self._pairs):
            first, second = self._pairs.pop(number)
            first.replica.awaited.pop(number, None)
            self._withdraw(second)

    def _hedge(self, first: _Copy, output_tokens: int) -> None:
        request, replica = first.request, first.replica
        if not replica.has(request) or request.first_token_ns != UNSET:
            return
        copy = as_it_came(request)
        place = self.stage.pick_other(copy, output_tokens, first.place)
        if place is None:
            return
        other = self.stage.replicas[place]
        assert isinstance(other, MortalReplica)
        self.sent += 1
        self._pairs[request.number] = first, _Copy(copy, other, place)
        for each in self._pairs[request.number]:
            each.replica.awaited[request.number] = each.request
            each.replica.on_answer = self.ended
        other.submit(copy, output_tokens)
        self.on_sent(copy, other)

    def _decide(self, winner: Request) -> None:
        first, second = self._pairs.pop(winner.number)
        won = second.request is winner
        self.won += won and winner.first_token_ns != UNSET
        kept, withdrawn = (second, first) if won else (first, second)
        kept.replica.awaited.pop(winner.number, None)
        self._withdraw(withdrawn)

    def _withdraw(self, copy: _Copy) -> None:
        copy.replica.awaited.pop(copy.request.number, None)
        copy.replica.give_up(copy.request, None)
        self.stage.ended(copy.request, copy.place)
        self.on_withdrawn(copy.request, copy.replica, copy.place)


def as_it_came(request: Request) -> Request:
    """The request before anything of it was computed."""
    return Request(
        request.number,
        request.arrival_ns,
        request.prompt_tokens,
        request.max_output_tokens,
        request.tenant,
        request.priority,
        request.content,
        request.done,
        request.first_token_due_ns,
        request.due_ns,
        request.session,
        request.ignores_eos,
    )
