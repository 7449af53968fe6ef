"""The service around the replicas: requests that arrive are checked, and routed."""

from collections.abc import Mapping, Sequence
from functools import partial

from policies.admission import Admission
from policies.horizon import FOREVER
from simcore.core.clock import to_s
from simcore.core.request import ReadOnlyRequest, Request
from simcore.recording.fleet_log import FleetLog
from simcore.recording.handover_log import HandoverRow
from simcore.recording.migration_log import MigrationLog
from simcore.recording.recorder import Recorder
from simcore.service.client_timeouts import ClientTimeouts, Holder
from simcore.service.clock import Clock
from simcore.service.fault_record import FaultRecord
from simcore.service.faults import Faults
from simcore.service.fleets import Fleets
from simcore.service.gateway import Gateway
from simcore.service.handovers import Handovers
from simcore.service.migrations import Migrations
from simcore.service.mortal_replica import MortalReplica
from simcore.service.resending import NOWHERE
from simcore.service.roles import PrefillReplica
from simcore.service.service_counts import ServiceCounts
from simcore.service.stage import Refusals, Stage
from simcore.service.updates import UpdateRecord, Updates

TOO_LONG = "prompt and output exceed the context limit"


class Router:
    """Sends each arriving request to a replica that the routing policy picks, or turns it away.

    A request longer than ``max_context_tokens``, or refused by the limits of all replicas, could never be served. What
    could be must pass every admission policy. What prefill replicas take in, ``handovers`` bring to where it decodes.
    """

    def __init__(
        self,
        clock: Clock,
        entry: Stage,
        max_context_tokens: int,
        recorder: Recorder,
        admission: Sequence[Admission] = (),
        handovers: Handovers | None = None,
        gateway: Gateway | None = None,
        faults: Faults | None = None,
        updates: Updates | None = None,
        migrations: Migrations | None = None,
        fleets: Fleets | None = None,
    ) -> None:
        self._clock = clock
        self._client_timeouts = ClientTimeouts(clock)
        self._entry = entry
        self._handovers = handovers
        self._faults = faults
        self._migrations = migrations
        self._gateway = gateway = gateway or Gateway()
        self._fleets = fleets
        self._admission = admission
        stages = [entry] if handovers is None else [entry, handovers.stage]
        for stage in stages:
            for place in range(len(stage.replicas)):
                self._follow(stage, place)
        if faults is not None:
            faults.crashes.on_replaced = partial(self._follow, entry)
        self._updates = updates
        if updates is not None:
            updates.on_replaced = partial(self._follow, entry)
        gateway.connect()
        if gateway.hedges is not None:
            gateway.hedges.on_sent = self._watch
        if gateway.queue is not None:
            gateway.queue.send, gateway.queue.on_dropped = self._go_on, self._note_given_up
        if gateway.resending is not None:
            gateway.resending.send, gateway.resending.receive = self._resend, self._enter
            gateway.resending.on_dropped = self._note_given_up
            if gateway.resending.config.of_timeouts:
                self._client_timeouts.asks_again = self._asks_again
        if handovers is not None:
            self._connect(handovers)
        if migrations is not None:
            migrations.on_held, migrations.on_dropped = self._watch, self._note_given_up
        if fleets is not None:
            fleets.room.on_dropped = self._note_given_up
            for fleet in fleets.of_pools.values():
                fleet.on_serving, fleet.on_renewed = self._empty_room, partial(self._follow, entry)
            fleets.begin()
        self._replicas = entry.replicas if handovers is None else [*entry.replicas, *handovers.stage.replicas]
        self._service = ServiceCounts(self._replicas)
        self._max_context_tokens = max_context_tokens
        self._recorder = recorder

    def receive(self, request: Request, output_tokens: int) -> None:
        """Send on, or turn away, a request that arrives now; it would generate ``output_tokens``."""
        if self._gateway.resending is not None:
            self._gateway.resending.arrived += 1
        self._enter(request, output_tokens)

    def _enter(self, request: Request, output_tokens: int) -> None:
        total_tokens = request.prompt_tokens + output_tokens
        request.max_output_tokens = min(request.max_output_tokens, self._max_context_tokens - request.prompt_tokens)
        if total_tokens > self._max_context_tokens:
            self._reject(request, TOO_LONG)
            return
        refusals = self._refusals(request, output_tokens)
        if None not in refusals.values():
            self._reject(request, next(filter(None, refusals.values())))
        elif self._admission and (reason := self._rejection(request)) is not None:
            resending = self._gateway.resending
            if resending is None or not resending.turned_away(request, output_tokens):
                self._reject(request, reason)
        else:
            self._let_in(request, output_tokens, refusals)

    def _let_in(self, request: Request, output_tokens: int, refusals: Refusals) -> None:
        gateway = self._gateway
        if gateway.output_limit is not None:
            self._catch_up()
            output_tokens = gateway.bounded(request, output_tokens, self._service)
        if gateway.queue is not None and gateway.queue.takes(request, output_tokens):
            self._watch(request, gateway.queue)
            return
        place = self._send_on(request, output_tokens, refusals)
        if gateway.hedges is not None and place is not None:
            gateway.hedges.begin(request, output_tokens, place)

    @property
    def handover_rows(self) -> Sequence[HandoverRow] | None:
        """Who went from one replica to another; None where nobody does."""
        return None if self._handovers is None else self._handovers.log.rows

    @property
    def migration_log(self) -> MigrationLog | None:
        """Which running requests moved; None where none ever does."""
        return None if self._migrations is None else self._migrations.log

    @property
    def gateway(self) -> Gateway:
        """What is done for requests beside routing them."""
        return self._gateway

    @property
    def fault_records(self) -> Sequence[FaultRecord] | None:
        """What each fault did; None where nothing goes wrong."""
        return None if self._faults is None else self._faults.records

    @property
    def update_records(self) -> Sequence[UpdateRecord]:
        """What came of each update."""
        return () if self._updates is None else self._updates.records

    def close_gateway(self) -> None:
        """Leave one copy of each request, before replicas hand theirs to the recorder."""
        self._gateway.close()

    @property
    def fleet_logs(self) -> Mapping[int, FleetLog]:
        """What replicas went through that come and go, by the number of their pool."""
        return {} if self._fleets is None else {pool: fleet.log for pool, fleet in self._fleets.of_pools.items()}

    def close(self) -> None:
        """Hand to the recorder whom the end of the run cut off on the way between replicas."""
        if self._handovers is not None:
            self._handovers.close()
        if self._migrations is not None:
            self._migrations.close()
        if self._gateway.resending is not None:
            self._gateway.resending.close()
        if self._gateway.queue is not None:
            self._gateway.queue.close()
        if self._fleets is not None:
            self._fleets.room.close()

    def _refusals(self, request: Request, output_tokens: int) -> Refusals:
        """Why each kind of replica could not serve a request; prefill replicas if none could decode it."""
        refusals = self._entry.refusals(request, output_tokens)
        if self._handovers is None or output_tokens == 1:
            return refusals
        decoding = self._handovers.stage.refusals(request, output_tokens)
        if None in decoding.values():
            return refusals
        reason = next(iter(decoding.values()))
        return {limits: reason if limits.prefills_only else own for limits, own in refusals.items()}

    def _resend(self, request: Request, output_tokens: int) -> None:
        """Send on a request that lost its replica."""
        if self._gateway.queue is not None and self._gateway.queue.takes(request, output_tokens):
            self._watch(request, self._gateway.queue)
            return
        self._go_on(request, output_tokens)

    def _go_on(self, request: Request, output_tokens: int) -> None:
        self._send_on(request, output_tokens, self._entry.refusals(request, output_tokens))

    def _send_on(self, request: Request, output_tokens: int, refusals: Refusals) -> int | None:
        """Send a request to a replica; returns its place, or None if no such replica is up."""
        place = self._entry.pick(request, refusals)
        if place is None and self._fleets is not None and self._fleets.expect:
            self._fleets.room.enter(request, output_tokens)
            self._watch(request, self._fleets.room)
            return None
        if place is None:
            self._note_given_up(request)
            self._reject(request, self._entry.why_none)
            return None
        replica = self._entry.replicas[place]
        holder: Holder = replica
        if self._handovers is not None and isinstance(replica, PrefillReplica):
            self._handovers.begin(request, output_tokens, replica, place)
            holder = self._handovers
            replica.submit(request, 1)
        else:
            replica.submit(request, output_tokens)
        self._watch(request, holder)
        if self._migrations is not None:
            self._migrations.wake()
        return place

    def _empty_room(self) -> None:
        """Send on all who waited for a replica."""
        assert self._fleets is not None
        for request, output_tokens in self._fleets.room.leave():
            self._resend(request, output_tokens)

    def _watch(self, request: Request, holder: Holder) -> None:
        if min(request.first_token_due_ns, request.due_ns) < FOREVER:
            self._client_timeouts.watch(request, holder)

    def _asks_again(self, request: Request, holder: Holder) -> bool:
        """Whether a client that has waited too long asks again; one whose request is at no replica yet gives up."""
        if not isinstance(holder, MortalReplica):
            return False
        place = holder.index
        if not self._gateway.asks_again(request, holder, place, self._clock.now_ns):
            return False
        self._entry.ended(request, place)
        self._note_given_up(request)
        return True

    def _follow(self, stage: Stage, place: int) -> None:
        """Hear of the ends of requests at a replica, where anybody wants to know."""
        if self._admission or self._gateway.follows or stage.hears_ends:
            finished = partial(self._note_finished, stage, place)
            stage.replicas[place].requests.tell(finished, partial(self._note_dropped, stage, place))

    def _connect(self, handovers: Handovers) -> None:
        """Have prefill replicas tell of the prompts that they compute, and follow those that leave them."""
        handovers.on_left = self._entry.ended
        handovers.on_landed = self._watch
        handovers.on_dropped = self._note_given_up
        for replica in self._entry.replicas:
            if isinstance(replica, PrefillReplica):
                replica.on_prefilling = handovers.prefilling
                replica.requests.on_prefilled = partial(handovers.prefilled, replica)

    def _catch_up(self) -> None:
        for replica in self._replicas:
            replica.catch_up()

    def _rejection(self, request: Request) -> str | None:
        now_s, view = to_s(self._clock.now_ns), ReadOnlyRequest(request)
        self._catch_up()
        for policy in self._admission:
            reason = policy.rejects(view, self._service, now_s)
            if reason is not None:
                return reason
        for policy in self._admission:
            policy.accepted(view, now_s)
        return None

    def _note_finished(self, stage: Stage, place: int, request: Request) -> None:
        stage.ended(request, place)
        ttft_s = to_s(request.first_token_ns - request.arrival_ns)
        self._gateway.ended(request, place, ttft_s)
        for policy in self._admission:
            policy.finished(ReadOnlyRequest(request), ttft_s, to_s(self._clock.now_ns))

    def _note_dropped(self, stage: Stage, place: int, request: Request) -> None:
        stage.ended(request, place)
        self._gateway.ended(request, place, None)
        self._note_given_up(request)

    def _note_given_up(self, request: Request) -> None:
        for policy in self._admission:
            policy.dropped(ReadOnlyRequest(request), to_s(self._clock.now_ns))

    def _reject(self, request: Request, reason: str) -> None:
        self._recorder.request_rejected(request, NOWHERE, self._clock.now_ns, reason)
        if request.done is not None:
            request.done(False)
