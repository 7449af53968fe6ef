"""Whoever sends the requests of a workload: at their times, or as clients that wait for each other."""

from collections.abc import Callable, Generator, Iterator
from itertools import repeat
from typing import Any

from simpy import Event

from simcore.core.content import Content
from simcore.core.request import Request
from simcore.service.api_server import ApiServer
from simcore.service.clock import ARRIVAL, Alarm, Clock
from simcore.service.service import Router
from simcore.workload.batch import NO_OUTPUT_LIMIT, NO_TIMEOUT_NS, ClosedLoop, OpenLoop, RequestBatch

Progress = Callable[[int], None]
Sent = tuple[int, int, int, str, int, Content | None, tuple[int, int] | None]
"""Prompt tokens, output tokens, limit of output tokens, tenant, priority and content of a request, and its timeouts."""
_PROGRESS_EVERY = 1024


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
