"""In which order waiting requests are admitted."""

from abc import ABC, abstractmethod
from typing import ClassVar

from policies.horizon import FOREVER
from policies.views import RequestView


class Ordering(ABC):
    """Sorts the queue: the request with the smallest key is admitted first; ties keep arrival order."""

    stable_steps: ClassVar[int] = FOREVER
    """Steps for which the order of requests already waiting stands while none arrives or finishes."""

    @abstractmethod
    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The request's place, taken when it enters the queue at ``now_s``."""
