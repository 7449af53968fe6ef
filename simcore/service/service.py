"""The service around the replicas: requests arrive, are checked, and are routed."""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from simpy import Event

from policies.admission import Admission
from policies.horizon import FOREVER
from simcore.core.clock import to_s
from simcore.core.content import Content
from simcore.core.request import ReadOnlyRequest, Request
from simcore.recording.handover_log import HandoverRow
from simcore.recording.recorder import Recorder
from simcore.service.api_server import ApiServer
from simcore.service.client_timeouts import ClientTimeouts, Holder
from simcore.service.clock import ARRIVAL, Alarm, Clock
from simcore.service.fault_record import FaultRecord
from simcore.service.faults import Faults
from simcore.service.handovers import Handovers
from simcore.service.roles import PrefillReplica
from simcore.service.service_counts import ServiceCounts
from simcore.service.stage import Refusals, Stage
from simcore.workload.batch import NO_OUTPUT_LIMIT, NO_TIMEOUT_NS, ClosedLoop, OpenLoop, RequestBatch

TOO_LONG = "prompt and output exceed the context limit"
NONE_UP = "no replica that could serve it was up"
NO_REPLICA = -1

Progress = Callable[[int], None]
Sent = tuple[int, int, int, str, int, Content | None, tuple[int, int] | None]
"""Prompt tokens, output tokens, limit of output tokens, tenant, priority and content of a request, and its timeouts."""
_PROGRESS_EVERY = 1024


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
        faults: Faults | None = None,
    ) -> None:
        self._clock = clock
        self._entry = entry
        self._handovers = handovers
        self._faults = faults
        self._admission = admission
        stages = [entry] if handovers is None else [entry, handovers.stage]
        for stage in stages:
            for place in range(len(stage.replicas)):
                self._follow(stage, place)
        if faults is not None:
            faults.resending.send = self._resend
            faults.resending.on_dropped = self._note_given_up
            faults.crashes.on_replaced = partial(self._follow, entry)
        if handovers is not None:
            self._connect(handovers)
        self._replicas = entry.replicas if handovers is None else [*entry.replicas, *handovers.stage.replicas]
        self._service = ServiceCounts(self._replicas)
        self._max_context_tokens = max_context_tokens
        self._recorder = recorder
        self._client_timeouts = ClientTimeouts(clock)

    def receive(self, request: Request, output_tokens: int) -> None:
        """Send on, or turn away, a request that arrives now; it would generate ``output_tokens``."""
        if self._faults is not None:
            self._faults.resending.arrived += 1
        total_tokens = request.prompt_tokens + output_tokens
        request.max_output_tokens = min(request.max_output_tokens, self._max_context_tokens - request.prompt_tokens)
        if total_tokens > self._max_context_tokens:
            self._reject(request, TOO_LONG)
            return
        refusals = self._refusals(request, output_tokens)
        if None not in refusals.values():
            self._reject(request, next(filter(None, refusals.values())))
        elif self._admission and (reason := self._rejection(request)) is not None:
            self._reject(request, reason)
        else:
            self._send_on(request, output_tokens, refusals)

    @property
    def handover_rows(self) -> Sequence[HandoverRow] | None:
        """Who went from one replica to another; None where nobody does."""
        return None if self._handovers is None else self._handovers.log.rows

    @property
    def fault_records(self) -> Sequence[FaultRecord] | None:
        """What each fault did; None where nothing goes wrong."""
        return None if self._faults is None else self._faults.records

    def close(self) -> None:
        """Hand to the recorder whom the end of the run cut off on the way between replicas."""
        if self._handovers is not None:
            self._handovers.close()
        if self._faults is not None:
            self._faults.resending.close()

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
        self._send_on(request, output_tokens, self._entry.refusals(request, output_tokens))

    def _send_on(self, request: Request, output_tokens: int, refusals: Refusals) -> None:
        place = self._entry.pick(request, refusals)
        if place is None:
            self._note_given_up(request)
            self._reject(request, NONE_UP)
            return
        replica = self._entry.replicas[place]
        holder: Holder = replica
        if self._handovers is not None and isinstance(replica, PrefillReplica):
            self._handovers.begin(request, output_tokens, replica, place)
            holder = self._handovers
            replica.submit(request, 1)
        else:
            replica.submit(request, output_tokens)
        self._watch(request, holder)

    def _watch(self, request: Request, holder: Holder) -> None:
        if min(request.first_token_due_ns, request.due_ns) < FOREVER:
            self._client_timeouts.watch(request, holder)

    def _follow(self, stage: Stage, place: int) -> None:
        """Hear of the ends of requests at a replica, where anybody wants to know."""
        if self._admission or stage.routing.follows_requests:
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

    def _rejection(self, request: Request) -> str | None:
        now_s, view = to_s(self._clock.now_ns), ReadOnlyRequest(request)
        for replica in self._replicas:
            replica.catch_up()
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
        for policy in self._admission:
            policy.finished(ReadOnlyRequest(request), ttft_s, to_s(self._clock.now_ns))

    def _note_dropped(self, stage: Stage, place: int, request: Request) -> None:
        stage.ended(request, place)
        self._note_given_up(request)

    def _note_given_up(self, request: Request) -> None:
        for policy in self._admission:
            policy.dropped(ReadOnlyRequest(request), to_s(self._clock.now_ns))

    def _reject(self, request: Request, reason: str) -> None:
        self._recorder.request_rejected(request, NO_REPLICA, self._clock.now_ns, reason)
        if request.done is not None:
            request.done(False)


def open_loop(
    clock: Clock, workload: OpenLoop, api: ApiServer, router: Router, progress: Progress | None
) -> Generator[Event, Any, None]:
    """A process that lets requests arrive at their times, whatever becomes of them, and come to the queue later."""
    number = 0
    for batch in workload.batches():
        for arrival_ns, sent in zip(batch.arrival_ns.tolist(), as_sent(batch), strict=True):
            delay_ns = api.passes_ns(arrival_ns, sent[0]) - clock.now_ns
            if delay_ns > 0:
                yield Alarm(clock, delay_ns, ARRIVAL)
            router.receive(arriving(number, arrival_ns, sent), sent[1])
            number += 1
            if progress is not None and number % _PROGRESS_EVERY == 0:
                progress(number)


def closed_loop(clock: Clock, workload: ClosedLoop, api: ApiServer, router: Router, progress: Progress | None) -> None:
    """Start the clients of a closed loop; each sends the next request that no other has sent yet."""
    supply = iter(enumerate(as_sent(workload.requests)))
    for _ in range(min(workload.concurrency, len(workload.requests))):
        clock.process(_client(clock, supply, workload.think_time_ns, api, router, progress))


def as_sent(batch: RequestBatch) -> Iterator[Sent]:
    """What is sent with each request of a batch."""
    limits = repeat(NO_OUTPUT_LIMIT) if batch.max_output_tokens is None else batch.max_output_tokens.tolist()
    tenants = repeat("") if batch.tenant is None else (batch.tenants[index] for index in batch.tenant.tolist())
    priorities = repeat(0) if batch.priority is None else batch.priority.tolist()
    contents = repeat(None) if batch.contents is None else batch.contents
    lengths = batch.prompt_tokens.tolist(), batch.output_tokens.tolist()
    return zip(*lengths, limits, tenants, priorities, contents, _timeouts_ns(batch), strict=False)


def _timeouts_ns(batch: RequestBatch) -> Iterator[tuple[int, int] | None]:
    """For each request how long its client waits for the first and for the last token, None where nobody gives up."""
    columns = (batch.first_token_timeout_ns, batch.timeout_ns)
    if all(column is None for column in columns):
        return repeat(None)
    both = (repeat(NO_TIMEOUT_NS) if column is None else column.tolist() for column in columns)
    return zip(*both, strict=False)


def arriving(number: int, now_ns: int, sent: Sent, done: Callable[[bool], object] | None = None) -> Request:
    """The request that arrives now."""
    prompt_tokens, _, limit, tenant, priority, content, timeouts_ns = sent
    request = Request(number, now_ns, prompt_tokens, limit, tenant, priority, content, done)
    if timeouts_ns is not None:
        first_token_timeout_ns, timeout_ns = timeouts_ns
        request.first_token_due_ns = now_ns + first_token_timeout_ns
        request.due_ns = now_ns + timeout_ns
    return request


def _client(
    clock: Clock,
    supply: Iterator[tuple[int, Sent]],
    think_time_ns: int,
    api: ApiServer,
    router: Router,
    progress: Progress | None,
) -> Generator[Event, Any, None]:
    for number, sent in supply:
        done = Event(clock)
        request = arriving(number, clock.now_ns, sent, done.succeed)
        passes_ns = api.passes_ns(clock.now_ns, request.prompt_tokens)
        if passes_ns > clock.now_ns:
            yield clock.timeout(passes_ns - clock.now_ns)
        router.receive(request, sent[1])
        if progress is not None and number % _PROGRESS_EVERY == 0:
            progress(number)
        yield done
        if think_time_ns:
            yield clock.timeout(think_time_ns)
