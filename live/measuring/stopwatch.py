"""Times of the parts of a forward pass: by the host's clock where the host computes, by events on a GPU."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

_AHEAD_CYCLES = 20_000_000
"""Clock cycles that a GPU waits before a pass, about ten milliseconds: launches then queue up before it begins."""


class Stopwatch(ABC):
    """Laps of one pass, each with a label."""

    @abstractmethod
    def start(self) -> None:
        """Begin a pass; laps of the one before are forgotten."""

    @abstractmethod
    def lap(self, label: object) -> None:
        """What ran since the last lap, or the start, is of this label."""

    @abstractmethod
    def laps(self) -> list[tuple[object, int]]:
        """Each lap's label and nanoseconds, in order; waits for a GPU."""


class HostStopwatch(Stopwatch):
    """By ``perf_counter_ns``, or another clock of nanoseconds."""

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns
        self._times: list[int] = []
        self._labels: list[object] = []

    def start(self) -> None:
        """See ``Stopwatch``."""
        self._labels = []
        self._times = [self._now_ns()]

    def lap(self, label: object) -> None:
        """See ``Stopwatch``."""
        self._times.append(self._now_ns())
        self._labels.append(label)

    def laps(self) -> list[tuple[object, int]]:
        """See ``Stopwatch``."""
        spans = (later - earlier for earlier, later in zip(self._times, self._times[1:], strict=False))
        return list(zip(self._labels, spans, strict=True))


class EventStopwatch(Stopwatch):
    """By CUDA events. The GPU waits until launches have queued up, so that its own time is measured, not the host's."""

    def __init__(self) -> None:
        self._events: list[torch.cuda.Event] = []
        self._labels: list[object] = []

    def start(self) -> None:
        """See ``Stopwatch``."""
        self._events, self._labels = [], []
        torch.cuda._sleep(_AHEAD_CYCLES)
        self._record()

    def lap(self, label: object) -> None:
        """See ``Stopwatch``."""
        self._record()
        self._labels.append(label)

    def laps(self) -> list[tuple[object, int]]:
        """See ``Stopwatch``."""
        self._events[-1].synchronize()
        pairs = zip(self._events, self._events[1:], strict=False)
        spans = (round(first.elapsed_time(second) * 1e6) for first, second in pairs)
        return list(zip(self._labels, spans, strict=True))

    def _record(self) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)
