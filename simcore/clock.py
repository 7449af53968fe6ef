"""The clock: integer nanoseconds inside, seconds at the edges, and a stated order among simultaneous events."""

from simpy import Environment, Event
from simpy.events import EventPriority

from policies.horizon import FOREVER

NS_PER_S = 1_000_000_000

STEP_END = EventPriority(0)
"""Among events of the same nanosecond, step ends come first,"""
ARRIVAL = EventPriority(1)
"""then arrivals (and all other plain SimPy events),"""
PLAN = EventPriority(2)
"""then planning."""


class Clock(Environment):
    """A SimPy environment whose time is a whole number of nanoseconds."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    @property
    def now_ns(self) -> int:
        """Nanoseconds since the start of the run."""
        return self._now  # type: ignore[return-value]  # never a float: all delays are whole

    @property
    def quiet_ns(self) -> int:
        """Nanoseconds until the next event that is already known, ``FOREVER`` without one."""
        return int(self._queue[0][0]) - self.now_ns if self._queue else FOREVER

    def skip(self, delay_ns: int) -> bool:
        """Move on by ``delay_ns`` at once if no event is due until then, which is what waiting would come to."""
        end_ns = self.now_ns + delay_ns
        if self._queue and self._queue[0][0] <= end_ns:
            return False
        self._now = end_ns
        return True

    @property
    def more_now(self) -> bool:
        """Whether further events are due in this very nanosecond."""
        return bool(self._queue) and self._queue[0][0] == self._now


class Alarm(Event):
    """An event that fires ``delay_ns`` from now, in its ``order`` among those of the same nanosecond."""

    def __init__(self, clock: Clock, delay_ns: int, order: EventPriority) -> None:
        self.env = clock
        self.callbacks = []
        self._value = None
        self._ok = True
        clock.schedule(self, order, delay_ns)


def to_ns(seconds: float) -> int:
    """Seconds to the nearest nanosecond."""
    return round(seconds * NS_PER_S)


def to_s(nanoseconds: int) -> float:
    """Nanoseconds to seconds."""
    return nanoseconds / NS_PER_S
