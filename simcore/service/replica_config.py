"""How a replica runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from simcore.cost.adapters import AdapterCost
from simcore.scheduling.scheduler import Scheduler
from simcore.service.pace import Pace


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """How a replica runs.

    With ``fast_forward`` like steps are executed in one jump; an arrival that may change the plan ends it with the step
    in progress, and so does a client that gives up, where ``clients_give_up``. Results are the same to the bit. One
    that is ``alone`` in its cluster looks ahead to the next event instead. ``check`` recounts all books after every
    step, for tests. Gaps between tokens that end by ``measure_since_ns`` are left out.

    With ``async_scheduling``, a step is scheduled when the one before it starts, as asynchronous engines do so that the
    accelerator never waits for the host; it cannot have who came later, unless nobody runs, and does not know yet who
    ends with the step before it. ``paces`` are of the replicas, by their number, that are slow at times,
    ``adapters`` what these add to steps.
    """

    measure_since_ns: int = 0
    alone: bool = False
    fast_forward: bool = True
    check: bool = False
    async_scheduling: bool = False
    clients_give_up: bool = False
    paces: Mapping[int, Pace] | None = None
    adapters: AdapterCost | None = None


def sees_entries(scheduler: Scheduler) -> bool:
    """Whether it matters when the scheduler sees a request, even if there is no room for it."""
    loading = scheduler.state.loading
    return (loading is not None and loading.tiers.prefetches) or not scheduler.config.ordering.fixed_keys
