"""Tasks in processes of their own, watched and ended by a page that goes on meanwhile."""

from collections import OrderedDict
from collections.abc import Callable
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any

from experiments.processes import Worker, available_cores
from simcore.core.errors import ServetwinError

_KEPT = 24
"""Answers that are kept; those of large runs take tens of megabytes."""


class Workers:
    """Processes that wait for tasks, no more at work than there are cores; each is faster once it has run one."""

    def __init__(self, most: int | None = None) -> None:
        self._idle: list[Worker] = []
        self._lock = Lock()
        self.free = BoundedSemaphore(most or available_cores())

    def take(self) -> Worker:
        """An idle process, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Worker()

    def give(self, worker: Worker) -> None:
        """Let a process wait for another task."""
        with self._lock:
            self._idle.append(worker)

    def warm_up(self, function: Callable[[Any], Any], item: Any) -> None:
        """Let a process do something in vain, so that what it imports and reads is there when it is needed."""
        Job(self, function, item)

    def stop(self) -> None:
        """End the processes that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.stop()


class Job:
    """A task on its way. ``progress`` is what the task told last; ``answer`` and ``error`` are of one that ended."""

    def __init__(self, workers: Workers, function: Callable[[Any], Any], item: Any) -> None:
        self.progress: Any = None
        self.answer: Any = None
        self.error: str | None = None
        self.cancelled = False
        self._workers = workers
        self._worker: Worker | None = None
        self._lock = Lock()
        self._ended = Event()
        Thread(target=self._carry_out, args=(function, item), daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether it has an answer, failed, or was cancelled."""
        return self._ended.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; False if it does not end in time."""
        return self._ended.wait(timeout_s)

    def cancel(self) -> None:
        """End the process at once, whatever it is doing."""
        with self._lock:
            self.cancelled = not self.ended
            if self._worker is not None:
                self._worker.stop()

    def _carry_out(self, function: Callable[[Any], Any], item: Any) -> None:
        with self._workers.free:
            try:
                self._perform(function, item)
            except ServetwinError as error:
                self.error = None if self.cancelled else str(error)
            except Exception as error:
                self.error = None if self.cancelled else f"The simulation failed: {error}"
            finally:
                with self._lock:
                    self._worker = None
                    self._ended.set()

    def _perform(self, function: Callable[[Any], Any], item: Any) -> None:
        with self._lock:
            if self.cancelled:
                return
            worker = self._worker = self._workers.take()
        answer = worker.perform(function, item, lambda item: "The simulation", self._told)
        with self._lock:
            self._worker = None
            if self.cancelled:
                return
        self.answer = answer
        self._workers.give(worker)

    def _told(self, value: Any) -> None:
        self.progress = value


class Answers:
    """Answers by the fingerprint of what was asked; those not used for longest are forgotten."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, fingerprint: str) -> Any:
        """The answer, None if there is none."""
        with self._lock:
            if fingerprint in self._kept:
                self._kept.move_to_end(fingerprint)
            return self._kept.get(fingerprint)

    def keep(self, fingerprint: str, answer: Any) -> None:
        """Keep an answer."""
        with self._lock:
            self._kept[fingerprint] = answer
            self._kept.move_to_end(fingerprint)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


class Desk:
    """The tasks of one visitor: of each place on a page the last one asked for, all others ended."""

    def __init__(self, workers: Workers, answers: Answers) -> None:
        self._workers = workers
        self._answers = answers
        self._asked: dict[str, tuple[str, Job]] = {}

    def ask(self, place: str, fingerprint: str, function: Callable[[Any], Any], item: Any) -> None:
        """Start a task for a place unless its answer is there or on its way; whatever else goes on there ends."""
        if self._answers.get(fingerprint) is not None:
            self.leave(place)
            return
        asked = self._asked.get(place)
        if asked is not None and asked[0] == fingerprint and not asked[1].cancelled and asked[1].error is None:
            return
        self.leave(place)
        self._asked[place] = fingerprint, Job(self._workers, function, item)

    def leave(self, place: str) -> None:
        """End what goes on at a place."""
        asked = self._asked.pop(place, None)
        if asked is not None:
            asked[1].cancel()

    def job(self, place: str, fingerprint: str) -> Job | None:
        """The task of a place if it is the one for this fingerprint; its answer is kept once it is there."""
        asked = self._asked.get(place)
        if asked is None or asked[0] != fingerprint:
            return None
        if asked[1].answer is not None:
            self._answers.keep(fingerprint, asked[1].answer)
        return asked[1]

    def answer(self, place: str, fingerprint: str) -> Any:
        """What is known for a fingerprint, from here or from anyone's earlier task; None if nothing is."""
        self.job(place, fingerprint)
        return self._answers.get(fingerprint)
