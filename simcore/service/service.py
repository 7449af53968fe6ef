"""The service around the replicas: requests arrive, are checked, and are routed."""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from simpy import Event

from policies.admission import Admission
from policies.capabilities import check_capabilities
from policies.horizon import FOREVER
from policies.routing import Routing
from simcore.core.clock import to_s
from simcore.core.content import Content
from simcore.core.request import ReadOnlyRequest, Request
from simcore.recording.recorder import Recorder
from simcore.service.api_server import ApiServer
from simcore.service.client_timeouts import ClientTimeouts
from simcore.service.clock import ARRIVAL, Alarm, Clock
from simcore.service.replica import Replica
from simcore.service.replica_limits import ReplicaLimits
from simcore.service.router_view import ReplicaAsRouted
from simcore.service.service_counts import ServiceCounts
from simcore.workload.batch import NO_OUTPUT_LIMIT, NO_TIMEOUT_NS, ClosedLoop, OpenLoop, RequestBatch

TOO_LONG = "prompt and output exceed the context limit"
NO_REPLICA = -1

Progress = Callable[[int], None]
Sent = tuple[int, int, int, str, int, Content | None, tuple[int, int] | None]
"""Prompt tokens, output tokens, limit of output tokens, tenant, priority and content of a request, and its timeouts."""
_PROGRESS_EVERY = 1024


class Router:
    """Sends each arriving request to a replica that the routing policy picks, or turns it away.

    A request longer than ``max_context_tokens``, or refused by the ``limits`` of all replicas, could never be served;
    one that the picked replica alone refuses goes to the next that does not. What could be served must pass every
    admission policy. All ``samples`` of a request, which arrive one after another, go to one replica.
    """

    def __init__(
        self,
        clock: Clock,
        replicas: Sequence[Replica],
        limits: Sequence[ReplicaLimits],
        routing: Routing,
        max_context_tokens: int,
        recorder: Recorder,
        admission: Sequence[Admission] = (),
        samples: int = 1,
    ) -> None:
        self._samples = samples
        self._latest: tuple[int, int] | None = None
        self._clock = clock
        self._admission = admission
        if admission or routing.follows_requests:
            for index, replica in enumerate(replicas):
                replica.requests.tell(partial(self._note_finished, index), partial(self._note_dropped, index))
        self._replicas = replicas
        self._limits = limits
        self._kinds_of_limits = tuple(dict.fromkeys(limits))
        self._views = [ReplicaAsRouted(replica) for replica in replicas]
        schedulers = [replica.scheduler for replica in replicas]
        self._service = ServiceCounts([each.view for each in schedulers], [each.memory for each in schedulers])
        check_capabilities(type(routing))
        self._routing = routing
        self._max_context_tokens = max_context_tokens
        self._recorder = recorder
        self._client_timeouts = ClientTimeouts(clock)

    def receive(self, request: Request, output_tokens: int) -> None:
        """Send on, or turn away, a request that arrives now; it would generate ``output_tokens``."""
        total_tokens = request.prompt_tokens + output_tokens
        request.max_output_tokens = min(request.max_output_tokens, self._max_context_tokens - request.prompt_tokens)
        if total_tokens > self._max_context_tokens:
            self._reject(request, TOO_LONG)
            return
        refused = {limits: limits.refusal(request, total_tokens - 1) for limits in self._kinds_of_limits}
        reasons = [reason for reason in refused.values() if reason is not None]
        if len(reasons) == len(refused):
            self._reject(request, reasons[0])
        elif self._admission and (reason := self._rejection(request)) is not None:
            self._reject(request, reason)
        else:
            place = self._choose(request)
            if reasons:
                while refused[self._limits[place]] is not None:
                    place = (place + 1) % len(self._limits)
            replica = self._replicas[place]
            if self._routing.follows_requests:
                self._routing.sent(ReadOnlyRequest(request), place)
            replica.submit(request, output_tokens)
            if min(request.first_token_due_ns, request.due_ns) < FOREVER:
                self._client_timeouts.watch(request, replica)

    def _choose(self, request: Request) -> int:
        whole = request.number // self._samples
        if self._samples == 1 or self._latest is None or self._latest[0] != whole:
            self._latest = whole, self._routing.choose(ReadOnlyRequest(request), self._views)
        return self._latest[1]

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

    def _note_finished(self, replica: int, request: Request) -> None:
        if self._routing.follows_requests:
            self._routing.ended(ReadOnlyRequest(request), replica)
        ttft_s = to_s(request.first_token_ns - request.arrival_ns)
        for policy in self._admission:
            policy.finished(ReadOnlyRequest(request), ttft_s, to_s(self._clock.now_ns))

    def _note_dropped(self, replica: int, request: Request) -> None:
        if self._routing.follows_requests:
            self._routing.ended(ReadOnlyRequest(request), replica)
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
