"""Print what an event in the queue costs with many waiting: ``python -m benchmarks.queue_orderings [--write FILE]``.

Each ordering is measured on the queue that a scheduler gives it. An event is one request that leaves the queue, either
to run or because its client gives up, and another that enters it: with 100 to 100,000 waiting, of ten tenants and two
levels, and then with 10,000 waiting and ever more tenants. Orderings that displace are measured with ever more running
too: there an event is the arrival of a request that displaces another, which is then given up.

Costs stand beside that of ``fcfs`` at 100 waiting, measured in turn with them; of several measurements the least
counts, which is the one that the machine disturbed least.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering import CacheAwareOrdering, GroupOrdering, Ordering
from policies.preemption.latest import Latest
from policies.registry import policy_class, policy_names
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory import KVBlockCounter, KVBlockManager
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult

WAITING = (100, 1_000, 10_000, 100_000)
TENANTS = (1, 10, 100, 1_000)
RUNNING = (100, 1_000, 10_000)
EVENTS = 2_000
REPEATS = 3
_SHARED_TOKENS = 64
"""Tokens with which every prompt begins, so that a lookup in the prefix cache finds something."""

Measure = Callable[[int], float]
"""Runs so many events; returns processor seconds per event."""


def main(write: Path | None) -> None:
    """Measure, print, and write if asked to."""
    names = ("fcfs", *(name for name in policy_names("ordering") if name != "fcfs"))
    base, arrivals = queue_events("fcfs", 100, 10), displacements("fcfs", 100)
    by_waiting = [f"{waiting:,} waiting" for waiting in WAITING]
    text = "\n".join(
        [
            "Cost of one event, a request that is admitted and another that arrives, in that of fcfs with 100 waiting.",
            "With more than 128 waiting, `longest-prefix` looks nothing up.",
            "",
            *_table(
                by_waiting,
                {name: [partial(queue_events, name, waiting, 10) for waiting in WAITING] for name in names},
                base,
            ),
            "",
            "The same where the request that leaves is not the first, but one whose client gives up:",
            "",
            *_table(
                by_waiting,
                {
                    name: [partial(queue_events, name, waiting, 10, give_up=True) for waiting in WAITING]
                    for name in names
                },
                base,
            ),
            "",
            "Admitted, with 10,000 waiting, by number of tenants; a group ordering looks at every tenant that waits:",
            "",
            *_table(
                [f"{tenants:,} tenants" for tenants in TENANTS],
                {
                    name: [partial(queue_events, name, 10_000, tenants) for tenants in TENANTS]
                    for name in names
                    if _groups(name)
                },
                base,
            ),
            "",
            "An arrival that displaces one of those that run, by how many run, in one under fcfs with 100:",
            "",
            *_table(
                [f"{running:,} running" for running in RUNNING],
                {
                    name: [partial(displacements, name, running) for running in RUNNING]
                    for name in names
                    if _displaces(name)
                },
                arrivals,
            ),
        ]
    )
    print(text)
    if write is not None:
        write.write_text(f"# Queues\n\nMade by `python -m benchmarks.queue_orderings`.\n\n{text}\n", encoding="utf-8")


def _groups(name: str) -> bool:
    return issubclass(policy_class("ordering", name), GroupOrdering)


def _displaces(name: str) -> bool:
    return bool(policy_class("ordering", name).preemptive)


def _table(columns: list[str], rows: dict[str, list[Callable[[], Measure]]], base: Measure) -> list[str]:
    lines = [f"| ordering | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for name, measures in rows.items():
        ratios = []
        for make in measures:
            measure = make()  # one at a time, since a long queue takes much memory
            pairs = [(measure(EVENTS), base(EVENTS)) for _ in range(REPEATS)]
            ratios.append(min(own for own, _ in pairs) / min(of_base for _, of_base in pairs))
        lines.append(f"| {name} | {' | '.join(f'{ratio:.1f}' for ratio in ratios)} |")
    return lines


def _scheduler(name: str, max_running_requests: int = 1) -> Scheduler:
    ordering: Ordering = policy_class("ordering", name)()
    looks_up = isinstance(ordering, CacheAwareOrdering)
    memory = KVBlockManager(10_000, 16, prefix_caching=True) if looks_up else KVBlockCounter(10**9, 16)
    return Scheduler(SchedulerConfig(ordering, ChunkedPrefill(10**6, max_running_requests), Latest()), memory)


def _request(scheduler: Scheduler, number: int, tenants: int, output_tokens: int) -> Request:
    prompt_tokens = 100 + number * 7919 % 900
    request = Request(number, number * 1000, prompt_tokens, 1000, str(number % tenants), number % 2)
    runs = [Run(0, _SHARED_TOKENS), Run((number + 1) << 20, prompt_tokens - _SHARED_TOKENS)]
    request.content = Content(runs, (number + 1) << 40)
    for predictor in scheduler.config.predictors:
        if predictor.sees_truth:
            predictor.reveal(request, output_tokens)
    return request


def queue_events(name: str, waiting: int, tenants: int, give_up: bool = False) -> Measure:
    """A queue in which so many wait."""
    scheduler = _scheduler(name)
    ordering, queue, groups = scheduler.config.ordering, scheduler.state.waiting, scheduler.state.groups
    number = 0
    entered: dict[int, Request] = {}

    def enter() -> None:
        nonlocal number
        request = entered[number] = _request(scheduler, number, tenants, 1 + number * 104729 % 500)
        number += 1
        queue.push(request, request.arrival_s)

    def run(events: int) -> float:
        if give_up:
            events = max(events, waiting)  # a heap is cleared of those that gave up once they are half of it
        started = process_time()
        for _ in range(events):
            request = queue.first(number / 1e6)
            if give_up:
                request = next(iter(entered.values()))  # the oldest, wherever it stands
                queue.remove(request)
            else:
                queue.pop()
                ordering.admitted(request, number / 1e6)
                if groups is not None:
                    groups.group_of(request).admitted(request)
            del entered[request.number]
            ordering.ended(request)
            enter()
        return (process_time() - started) / events

    for _ in range(waiting):
        enter()
    run(100)
    return run


def displacements(name: str, running: int) -> Measure:
    """A scheduler with so many requests in decode, which fill all its slots."""
    scheduler = _scheduler(name, running)
    number = 0

    def step() -> None:
        plan = scheduler.plan(number)
        scheduler.commit(plan, StepResult([1]), number)

    def run(events: int) -> float:
        nonlocal number
        started = process_time()
        for _ in range(events):
            scheduler.submit(_request(scheduler, number, 10, 1 + number % 7), number)
            number += 1
            step()
            scheduler.drop(scheduler.state.waiting.first(number / 1e9))
        return (process_time() - started) / events

    for _ in range(running):
        scheduler.submit(_request(scheduler, number, 10, 10**6 - number), 0)
        number += 1
    while len(scheduler.state.running) < running:
        step()
    run(100)
    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue_orderings")
    parser.add_argument("--write", type=Path)
    main(**vars(parser.parse_args()))
