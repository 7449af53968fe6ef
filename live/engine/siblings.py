"""Several outputs of one request: they share the blocks of its prompt until each writes its own (copy-on-write)."""

from live.engine.replica import LiveReplica
from live.engine.sequence import CallersSequence, LiveSequence, Sibling
from live.engine.wall_clock import WallClock
from simcore.core.request import Request


class Siblings:
    """Lets further outputs begin where the first of their request has its prompt computed.

    They took their first token together with it. A sibling for which there is no room beside it goes through the queue
    like a request that was preempted after its first token.
    """

    def __init__(self, clock: WallClock, replica: LiveReplica) -> None:
        self._clock, self._replica = clock, replica
        replica.live.ends.on_decoding = self._decodes
        replica.live.ends.on_forgotten = self._forgotten

    def _decodes(self, request: Request) -> None:
        sequence = self._replica.live.ends.sequences[request.number]
        for sibling in _taken(sequence):
            self._begin(sibling, request)

    def _forgotten(self, request: Request, sequence: LiveSequence) -> None:
        for sibling in _taken(sequence):
            if sibling.sequence.output_tokens:
                self._begin(sibling, None)
            elif sibling.request.done is not None:
                sibling.request.done(False)

    def _begin(self, sibling: Sibling, first: Request | None) -> None:
        """Let a sibling with one token go on, from where the ``first`` decodes if it does."""
        request, sequence, replica, now_ns = sibling.request, sibling.sequence, self._replica, self._clock.now_ns
        replica.live.ends.sequences[request.number] = sequence
        replica.requests.accept(request, sequence.limit)
        if sequence.finish_reason:
            request.first_scheduled_ns = request.first_token_ns = now_ns
            replica.requests.finish(request, now_ns)
        elif first is not None and replica.scheduler.fork(first, request, now_ns):
            replica.log.gaps.joined(request, now_ns)
        else:
            request.known_output_tokens = 1
            request.first_token_ns = request.lost_token_ns = now_ns
            replica.scheduler.submit(request, now_ns)


def _taken(sequence: LiveSequence) -> list[Sibling]:
    """The siblings of a sequence, which has none then."""
    if not isinstance(sequence, CallersSequence) or not sequence.siblings:
        return []
    taken, sequence.siblings = sequence.siblings, []
    return taken
