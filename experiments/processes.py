"""Work that is shared out among processes of their own, all of which end with the one that started them.

They are fresh interpreters, not made by ``multiprocessing``, which would import the caller's main module again: so a
plain script, a notebook or an interactive session can start them. Tasks and answers go over their standard input and
output. Where that input ends, since whoever wrote to it is gone, however it ended, the process ends at once too.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from traceback import format_exc
from typing import Any, BinaryIO, TypeVar

from simcore.core.errors import ServetwinError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_START = "import sys; sys.path[:] = {!r}; from experiments.processes import serve; serve()"


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(
    function: Callable[[_Item], _Answer],
    items: Sequence[_Item],
    processes: int,
    named: Callable[[_Item], str] = lambda item: "a run",
) -> Generator[tuple[int, _Answer], None, None]:
    """The place of each item and what ``function``, one that a module has by name, makes of it, as they come.

    Whatever ends this early, Ctrl-C included, ends the processes. Raises ``ServetwinError`` where the function does, or
    a process ends, which is told with what ``named`` calls the item; ``RuntimeError`` for any other error in it.
    """
    with closing(ProcessPool(processes)) as pool:
        places = {pool.submit(function, item, named): place for place, item in enumerate(items)}
        for finished in as_completed(places):
            yield places[finished], finished.result()


class ProcessPool:
    """So many processes that carry out what is submitted, in its order."""

    def __init__(self, processes: int) -> None:
        """Start them; raises ``OSError`` if that cannot be done."""
        self.at_once = processes
        self._workers: list[Worker] = []
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        # A thread for each process waits for it, so that the caller's is free to hear Ctrl-C.
        self._threads = ThreadPoolExecutor(processes)
        try:
            for _ in range(processes):
                self._workers.append(Worker())
                self._idle.put(self._workers[-1])
        except BaseException:
            self.close()
            raise

    def submit(
        self, function: Callable[[_Item], _Answer], item: _Item, named: Callable[[_Item], str]
    ) -> "Future[_Answer]":
        """What the function makes of the item, once a process has come to it; it raises as ``in_processes`` does."""
        return self._threads.submit(self._perform, function, item, named)

    def _perform(self, function: Callable[[Any], Any], item: Any, named: Callable[[Any], str]) -> Any:
        worker = self._idle.get()
        try:
            return worker.perform(function, item, named)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()


@dataclass(frozen=True, slots=True)
class Raised:
    """What a task raised: an error of the user's, or the trace of any other."""

    error: ServetwinError | str


def raised_by(raised: Raised, name: str) -> ServetwinError | RuntimeError:
    """The error to raise for it, in the process that asked; ``name`` says what failed."""
    error = raised.error
    return error if isinstance(error, ServetwinError) else RuntimeError(f"{name}:\n{error}")


@dataclass(frozen=True, slots=True)
class _Told:
    """What a task says of its progress."""

    value: Any


class Worker:
    """A process, seen from the one that started it."""

    def __init__(self) -> None:
        """Start it; raises ``OSError`` if that cannot be done."""
        # A process group of its own: Ctrl-C reaches the starter alone, which then decides.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )

    def perform(
        self,
        function: Callable[[Any], Any],
        item: Any,
        named: Callable[[Any], str],
        told: Callable[[Any], None] = lambda value: None,
    ) -> Any:
        """What the function makes of the item in the process; ``told`` is called with what it hands to ``tell``.

        Raises what ``in_processes`` does, also where another thread stops the process meanwhile.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump((function, item), self._process.stdin)
            self._process.stdin.flush()
            while isinstance(answer := pickle.load(self._process.stdout), _Told):
                told(answer.value)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):  # an end of a pipe is closed, or was
            code = self._process.wait()
            why = f"by signal {-code}, which may be for want of memory" if code < 0 else f"with exit code {code}"
            raise ServetwinError(f"{named(item)}: its process ended {why}.") from None
        if not isinstance(answer, Raised):
            return answer
        raise raised_by(answer, named(item))

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what is left to write to it goes nowhere
                stream and stream.close()


_answers: BinaryIO | None = None
"""Where answers go, in a process that serves."""


def tell(value: Any) -> None:
    """Say how far the task is, to whoever asked for it; elsewhere than in such a process nobody hears."""
    if _answers is not None:
        pickle.dump(_Told(value), _answers)
        _answers.flush()


def serve() -> None:
    """Carry out what comes in, until whoever asks is gone."""
    global _answers
    answers = _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a policy prints must not mix with the answers
    asked: SimpleQueue[tuple[Callable[[Any], Any], Any]] = SimpleQueue()
    Thread(target=_listen, args=(asked,), daemon=True).start()
    while True:
        pickle.dump(answer(*asked.get()), answers)
        answers.flush()


def _listen(asked: SimpleQueue[tuple[Callable[[Any], Any], Any]]) -> None:
    try:
        while True:
            asked.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)  # also in the middle of a task: nobody waits for it any more


def answer(function: Callable[[Any], Any], item: Any) -> Any:
    """What the function makes of the item, or what it raised, as a value that another process can be sent."""
    try:
        return function(item)
    except ServetwinError as error:
        return Raised(error)
    except Exception:
        return Raised(format_exc())
