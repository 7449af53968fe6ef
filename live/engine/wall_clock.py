"""SimPy's clock on real time: the processes of a simulated service run on it unchanged."""

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol

from simpy.core import EmptySchedule, StopSimulation

from live.measuring.clocks import MeasuringClock
from simcore.core.clock import NS_PER_S
from simcore.service.clock import Clock

Action = Callable[[], None]


class TimeSource(Protocol):
    """What time it is, and how to wait: real time, or for tests one that is made to pass."""

    def now_ns(self) -> int:
        """Nanoseconds from any origin."""

    def between_events(self) -> None:
        """Called before each event; what it does takes no time."""

    def wait(self, woken: threading.Condition, duration_ns: int | None) -> None:
        """Wait for so long, or (None) for ever, unless ``woken`` is notified before; its lock is held."""


class RealTime:
    """The computer's steady clock."""

    def now_ns(self) -> int:
        """See ``TimeSource``."""
        return monotonic_ns()

    def between_events(self) -> None:
        """See ``TimeSource``."""

    def wait(self, woken: threading.Condition, duration_ns: int | None) -> None:
        """See ``TimeSource``."""
        woken.wait(None if duration_ns is None else duration_ns / NS_PER_S)


class BusyTime:
    """Time in which nobody waits: what is to be waited for is there at once. For runs that no other thread calls.

    It goes by the computer's steady clock, or by one for measurements.
    """

    def __init__(self, clock: MeasuringClock | None = None) -> None:
        self._clock, self._skipped_ns = clock or MeasuringClock(), 0

    def now_ns(self) -> int:
        """See ``TimeSource``."""
        return self._clock.now_ns() + self._skipped_ns

    def between_events(self) -> None:
        """See ``TimeSource``."""
        self._clock.settle()

    def wait(self, woken: threading.Condition, duration_ns: int | None) -> None:
        """See ``TimeSource``."""
        if duration_ns is None:
            woken.wait()
        else:
            self._skipped_ns += max(duration_ns, 1)


class WallClock(Clock):
    """A clock on which an event happens when real time has come to it, and not before.

    ``now_ns`` is the time of the event in progress, as on the virtual clock, ``wall_ns`` the real one, which is never
    behind it but for a moment. A step that computes keeps everything else waiting; what came due meanwhile happens in
    the order of its times, before the end of the step. So a run has a history that can be told, and simulated, exactly.

    Other threads hand in actions (``call``). Unless it ``stays_open``, the clock stops when nothing is left to happen;
    ``stop`` ends it after the step in progress. It starts with its first event, or first call.
    """

    def __init__(self, stays_open: bool = False, time: TimeSource | None = None) -> None:
        super().__init__()
        self._time = time or RealTime()
        self._origin_ns: int | None = None
        self._woken = threading.Condition()
        self._calls: deque[tuple[int, Action]] = deque()
        self._stays_open = stays_open
        self._stopping = False

    @property
    def wall_ns(self) -> int:
        """Nanoseconds of real time since the clock started."""
        now_ns = self._time.now_ns()
        if self._origin_ns is None:
            self._origin_ns = now_ns
        return now_ns - self._origin_ns

    def call(self, action: Action) -> None:
        """Have something done on the clock's own thread, as an arrival of now; may be called by any thread."""
        with self._woken:
            self._calls.append((self.wall_ns, action))
            self._woken.notify()

    def stop(self) -> None:
        """Let nothing happen any more once the step in progress is done; may be called by any thread or signal."""
        self._stopping = True
        # A signal may come while its own thread holds the lock: it then looks before it waits.
        if self._woken.acquire(blocking=False):
            self._woken.notify()
            self._woken.release()

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping

    @property
    def next_event_ns(self) -> int:
        """When the next event is due, calls of other threads included."""
        if self._stopping:
            return self.now_ns
        self._take_calls()
        return super().next_event_ns

    def step(self) -> None:
        """Wait for the next event and let it happen."""
        self._take_calls()
        while not self._stopping:
            due_ns = super().next_event_ns if self._queue else None
            if due_ns is None and not self._stays_open:
                raise EmptySchedule
            ahead_ns = None if due_ns is None else due_ns - self.wall_ns
            if ahead_ns is not None and ahead_ns <= 0:
                self._time.between_events()
                super().step()
                return
            with self._woken:
                if not self._calls and not self._stopping:
                    self._time.wait(self._woken, ahead_ns)
            self._take_calls()
        raise StopSimulation(None)

    def _take_calls(self) -> None:
        while self._calls:
            came_ns, action = self._calls.popleft()
            self.call_at(max(came_ns, self.now_ns), action)
