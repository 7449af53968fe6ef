"""The virtual clock: whole nanoseconds, and a stated order among simultaneous events."""

from collections.abc import Callable

from simpy import Environment, Event
from simpy.events import EventPriority

from policies.horizon import FOREVER

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
    def next_event_ns(self) -> int:
        """When the next event that is already known is due, ``FOREVER`` without one."""
        queue = self._queue
        return queue[0][0] if queue else FOREVER  # type: ignore[return-value]  # whole, as now_ns is

    @property
    def has_more_to_do(self) -> bool:
        """Whether anything waits for an event that is already known; the end of ``run`` itself is none.

        Background alarms do not count.
        """
        return any(event.callbacks and not isinstance(event, BackgroundAlarm) for *_, event in self._queue)

    def call_at(self, time_ns: int, action: Callable[[], None]) -> None:
        """Do something at a time that is not past, among what arrives then."""
        Alarm(self, time_ns - self.now_ns, ARRIVAL).callbacks.append(lambda _: action())

    def skip_to(self, time_ns: int) -> None:
        """Move on at once to a time before the next event, which is what waiting for it would come to."""
        self._now = time_ns


class Alarm(Event):
    """An event that fires ``delay_ns`` from now, in its ``order`` among those of the same nanosecond."""

    def __init__(
        self, clock: Clock, delay_ns: int, order: EventPriority, action: Callable[[Event], None] | None = None
    ) -> None:
        self.env = clock
        self.callbacks = [] if action is None else [action]
        self._value = None
        self._ok = True
        clock.schedule(self, order, delay_ns)


class BackgroundAlarm(Alarm):
    """An alarm of what goes on for as long as anything else does, and is no reason for a run to go on."""
