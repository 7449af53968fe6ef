"""Cases, timed one after another: what fails costs only itself, and the whole ends in time."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import torch

from benchmarks.kernels import cases_of
from benchmarks.kernels.results import Missing, Result
from benchmarks.kernels.timing import Times
from kernels.case import Case

_LARGEST_BYTES = 4_000_000_000  # of a case that is compiled beside others, so that all fit the GPU's memory


class Deadline:
    """A number of seconds from now on, by a clock that only goes forward."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def left_s(self) -> float:
        """What is left of it, not below zero."""
        return max(0.0, self._end - self._clock())


def timed(
    cases: Sequence[Case],
    time_case: Callable[[Case], Times],
    clock_mhz: Callable[[], int | None],
    deadline: Deadline,
) -> Iterator[Result | Missing]:
    """Each case in order, timed, or why it was not: it raised, or the deadline had come before its turn."""
    for case in cases:
        if not deadline.left_s():
            yield Missing(case, "not timed: there was no time left")
            continue
        try:
            times = time_case(case)
        except Exception as error:  # whatever it is, the other cases are to be timed
            failure = Missing(case, f"{type(error).__name__}: {str(error).strip()[:200]}")
        else:
            yield Result(case, times, clock_mhz())
            continue
        # Outside the handler nothing holds on to the tensors of the failed case any more.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        yield failure


def compile_ahead(modules: Sequence[str], deadline: Deadline) -> None:
    """Run every case of the modules once, in many processes, so that the compiler's cache has what is to be timed.

    What does not run, or not before the deadline, is compiled when its turn comes, and told of then.
    """
    places = [
        (module, number)
        for module in modules
        for number, case in enumerate(cases_of(module))
        if case.bytes_moved <= _LARGEST_BYTES
    ]
    pool = ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 2), mp_context=get_context("spawn"))
    try:
        for future in as_completed([pool.submit(_run_once, *place) for place in places], timeout=deadline.left_s()):
            future.exception()
    except (TimeoutError, BrokenProcessPool):
        pass
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_once(module: str, number: int) -> None:
    cases_of(module)[number].prepare(torch.device("cuda"))()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
