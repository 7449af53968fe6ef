"""Who carries out many runs: this process, several of them, or the machines of a Ray cluster.

Results do not depend on it: what is submitted is a function of its item alone.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol, TypeVar

from experiments.processes import ProcessPool, available_cores
from simcore.core.errors import InputError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
Named = Callable[[Any], str]
_QUEUED = 2
"""Items that are submitted for each that can be carried out at once, so that nobody waits for the next."""


class Runner(Protocol):
    """Carries out what is submitted; ``at_once`` is how much of it at a time."""

    at_once: int

    def submit(self, function: Callable[[_Item], _Answer], item: _Item, named: Named) -> "Future[_Answer]":
        """What ``function``, one that a module has by name, makes of the item; ``named`` says what that is."""

    def close(self) -> None:
        """End whatever still goes on."""


class ThisProcess:
    """Carries out what is submitted at once, before ``submit`` returns."""

    at_once = 1

    def submit(self, function: Callable[[_Item], _Answer], item: _Item, named: Named) -> "Future[_Answer]":
        """The answer, which is there already; whatever the function raises is raised here."""
        future: Future[_Answer] = Future()
        future.set_result(function(item))
        return future

    def close(self) -> None:
        """Nothing goes on."""


def runner_of(jobs: int | None = None, ray: str | None = None, most: int | None = None) -> Runner:
    """The runner that a command asks for: ``jobs`` processes, by default one per core, or a Ray cluster.

    ``ray`` is the address of the cluster, or "local" for one that is started here and ends with this process. There are
    no more than ``most`` processes. Raises ``InputError`` for a number of jobs below 1, and for both at once.
    """
    if jobs is not None and jobs < 1:
        raise InputError("--jobs", jobs, "a whole number of at least 1")
    if ray is not None:
        if jobs is not None and ray != LOCAL:
            raise InputError(
                "--jobs", jobs, "nothing beside the address of a Ray cluster, which has its own processors"
            )
        from experiments.ray_runner import RayCluster  # an extra

        return RayCluster(None if ray == LOCAL else ray, jobs)
    processes = jobs or available_cores()
    if most is not None:
        processes = min(processes, max(most, 1))
    return ProcessPool(processes) if processes > 1 else ThisProcess()


LOCAL = "local"


def as_they_come(
    runner: Runner,
    function: Callable[[_Item], _Answer],
    items: Sequence[_Item],
    named: Named = lambda item: "a run",
) -> Generator[tuple[int, _Answer], None, None]:
    """The place of each item and what the function makes of it, in the order in which they are done."""
    waiting = iter(range(len(items)))
    underway: dict[Future[_Answer], int] = {}
    most = 1 if runner.at_once == 1 else _QUEUED * runner.at_once
    while True:
        while len(underway) < most and (place := next(waiting, None)) is not None:
            underway[runner.submit(function, items[place], named)] = place
        if not underway:
            return
        for finished in wait(underway, return_when=FIRST_COMPLETED).done:
            yield underway.pop(finished), finished.result()
