"""First come, first served."""

from dataclasses import dataclass
from typing import ClassVar

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class FirstComeFirstServed(Ordering):
    """Serve requests in order of arrival; a preempted request returns to the place its arrival gives it.

    Source: vLLM's default policy, fcfs.
    """

    fixed_keys: ClassVar[bool] = True

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The arrival time."""
        return (request.arrival_s,)
