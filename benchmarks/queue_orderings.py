"""Print what an event in the queue costs with many waiting: ``python -m benchmarks.queue_orderings [--write FILE]``.

An event is one request that leaves the queue and another that enters it. Each ordering is measured with 100 to 100,000
requests waiting, of ten tenants and two levels, and then with 10,000 waiting and ever more tenants. Costs stand beside
that of ``fcfs`` at 100 waiting, measured in turn with them; of several measurements the least counts, which is the one
that the machine disturbed least.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from time import process_time

from policies.ordering import GroupOrdering, Ordering
from policies.registry import policy_class, policy_names
from simcore.request import Request
from simcore.scheduling.decode_pool import DecodePool
from simcore.scheduling.grouped_queue import GroupedQueue
from simcore.scheduling.waiting_queue import KeyedQueue, WaitingQueue

WAITING = (100, 1_000, 10_000, 100_000)
TENANTS = (1, 10, 100, 1_000)
EVENTS = 2_000
REPEATS = 9


def main(write: Path | None) -> None:
    """Measure, print, and write if asked to."""
    names = ("fcfs", *(name for name in policy_names("ordering") if name != "fcfs"))
    lines = [
        "Cost of one event, in that of fcfs with 100 waiting:",
        "",
        f"| ordering | {' | '.join(f'{waiting:,} waiting' for waiting in WAITING)} |",
        f"|---|{'---:|' * len(WAITING)}",
        *(_row(name, [(waiting, 10) for waiting in WAITING]) for name in names),
        "",
        "The same with 10,000 waiting, by number of tenants; a group ordering looks at every tenant that waits:",
        "",
        f"| ordering | {' | '.join(f'{tenants:,} tenants' for tenants in TENANTS)} |",
        f"|---|{'---:|' * len(TENANTS)}",
        *(_row(name, [(10_000, tenants) for tenants in TENANTS]) for name in names if _groups(name)),
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if write is not None:
        write.write_text(f"# Queues\n\nMade by `python -m benchmarks.queue_orderings`.\n\n{text}", encoding="utf-8")


def _groups(name: str) -> bool:
    return issubclass(policy_class("ordering", name), GroupOrdering)


def _row(name: str, sizes: list[tuple[int, int]]) -> str:
    events = [queue_events(name, waiting, tenants) for waiting, tenants in sizes]
    base = queue_events("fcfs", 100, 10)
    ratios = []
    for measure in events:
        pairs = [(measure(EVENTS), base(EVENTS)) for _ in range(REPEATS)]
        ratios.append(min(own for own, _ in pairs) / min(of_base for _, of_base in pairs))
    return f"| {name} | {' | '.join(f'{ratio:.1f}' for ratio in ratios)} |"


def queue_events(name: str, waiting: int, tenants: int) -> Callable[[int], float]:
    """A queue in which so many wait, as a function that runs so many events; it returns processor seconds per event."""
    ordering: Ordering = policy_class("ordering", name)()
    groups = GroupedQueue(ordering, DecodePool(16)) if isinstance(ordering, GroupOrdering) else None
    queue: WaitingQueue = groups or KeyedQueue(ordering)
    number = 0

    def enter() -> None:
        nonlocal number
        request = Request(number, number * 1000, 100 + number * 7919 % 900, 1000, str(number % tenants), number % 2)
        for predictor in ordering.predictors:
            if predictor.sees_truth:
                predictor.reveal(request, 1 + number * 104729 % 500)
        number += 1
        queue.push(request, request.arrival_s)

    def run(events: int) -> float:
        started = process_time()
        for _ in range(events):
            request = queue.first(number / 1e6)
            queue.pop()
            ordering.admitted(request, number / 1e6)
            if groups is not None:
                groups.group_of(request).admitted(request)
            enter()
        return (process_time() - started) / events

    for _ in range(waiting):
        enter()
    run(100)
    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue_orderings")
    parser.add_argument("--write", type=Path)
    main(**vars(parser.parse_args()))
