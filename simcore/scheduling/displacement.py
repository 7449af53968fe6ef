"""Letting more urgent requests take the place of running ones."""

from typing import TYPE_CHECKING

from policies.batching import StepLimits
from simcore.request import Request

if TYPE_CHECKING:
    from simcore.scheduling.scheduler import Scheduler


def displace(scheduler: "Scheduler", limits: StepLimits, now_s: float) -> list[Request]:
    """Preempt running requests until the most urgent waiting one has room, or none that runs is less urgent.

    Walks the running requests once per request displaced.
    """
    key, memory = scheduler.ordering.key, scheduler.memory
    displaced: list[Request] = []
    while scheduler.running:
        candidate = scheduler.waiting.first(now_s)
        blocks = scheduler.blocks_to_admit(candidate)
        if len(scheduler.running) < limits.max_running_requests and blocks <= memory.free_for(candidate):
            break
        running = [request for request in scheduler.running.values() if not memory.apart(request, candidate)]
        if not running:
            break
        worst = max(running, key=lambda request: (key(request, now_s), request.number))
        if key(worst, now_s) <= key(candidate, now_s):
            break
        scheduler.preempt(worst, now_s)
        displaced.append(worst)
    return displaced
