"""Runs on the machines of a Ray cluster (Moritz et al., OSDI 2018), which starts a lost task again elsewhere.

Machines that this process does not start need servetwin installed, and the files that scenarios name.
"""

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from experiments.processes import Raised, answer, available_cores, raised_by
from simcore.core.errors import InputError, ServetwinError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_ANSWERS_S = 10.0
_RETRIES = 5
"""How often a task is started again whose worker, or machine, was lost."""


class RayCluster:
    """A Ray cluster that carries out what is submitted, a processor for each."""

    def __init__(self, address: str | None = None, processors: int | None = None) -> None:
        """Connect to a cluster, or start one on this machine with so many processors, which ends with this object.

        Raises ``ServetwinError`` where Ray is not installed, ``InputError`` for an address where no cluster answers.
        """
        try:
            import ray
        except ModuleNotFoundError:
            raise ServetwinError("--ray needs Ray: pip install 'servetwin[ray]'.") from None
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            options |= {"num_cpus": processors or available_cores(), "include_dashboard": False}
            options["runtime_env"] = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
        else:
            _check_answers(address)
            options["address"] = address
        try:
            ray.init(**options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            why = str(error).partition("\n")[0]
            raise InputError("--ray", address or "local", f"'local' or the address of a Ray cluster ({why})") from None
        self._ray = ray
        self._perform = ray.remote(num_cpus=1, max_retries=_RETRIES)(answer)
        resources: Callable[[], Mapping[str, float]] = ray.cluster_resources
        self.at_once = max(int(resources().get("CPU", 1)), 1)

    def submit(
        self, function: Callable[[_Item], _Answer], item: _Item, named: Callable[[_Item], str]
    ) -> "Future[_Answer]":
        """What the function makes of the item, once a worker has come to it; errors are those of processes."""
        told: Future[_Answer] = Future()

        def tell(done: "Future[Any]") -> None:
            error = done.exception()
            if error is not None:
                why = str(error).partition("\n")[0]
                told.set_exception(ServetwinError(f"{named(item)}: Ray gave it up after {_RETRIES} retries ({why})."))
            elif not isinstance(found := done.result(), Raised):
                told.set_result(found)
            else:
                told.set_exception(raised_by(found, named(item)))

        self._perform.remote(function, item).future().add_done_callback(tell)
        return told

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._ray.shutdown()


def _check_answers(address: str) -> None:
    """Raise ``InputError`` where nobody listens at ``host:port``, for which Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWERS_S).close()
    except (OSError, OverflowError) as error:
        raise InputError("--ray", address, f"the address of a Ray cluster that answers ({error})") from None
