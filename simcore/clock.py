"""The clock: integer nanoseconds inside, seconds at the edges, and a stated order among simultaneous events."""

from enum import IntEnum

from simpy import Environment, Event

NS_PER_S = 1_000_000_000


class Order(IntEnum):
    """Who comes first among events of the same nanosecond: step ends, then arrivals, then planning."""

    STEP_END = 0
    ARRIVAL = 1
    PLAN = 2


class Alarm(Event):
    """An event that fires ``delay_ns`` from now, in its ``order`` among those of the same nanosecond."""

    def __init__(self, env: Environment, delay_ns: int, order: Order) -> None:
        self.env = env
        self.callbacks = []
        self._value = None
        self._ok = True
        env.schedule(self, order, delay_ns)


def to_ns(seconds: float) -> int:
    """Seconds to the nearest nanosecond."""
    return round(seconds * NS_PER_S)


def to_s(nanoseconds: int) -> float:
    """Nanoseconds to seconds."""
    return nanoseconds / NS_PER_S
