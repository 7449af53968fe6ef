"""A live run of a scenario's workload, in real time."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import thread_time_ns
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from live.engine.replica import LiveReplica
from live.engine.setup import LiveSetup
from live.engine.wall_clock import TimeSource, WallClock
from simcore.core.result import Result
from simcore.recording.plan_log import PlannedStep
from simcore.recording.recorder import Recorder
from simcore.service.senders import Progress

PARTIAL = "The run was interrupted: what had arrived by then is in it, and no more."


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What a live run leaves: the result as of a simulation, each step's times and counts, and all plans.

    ``disturbed_share`` is the share of the steps' time in which their thread did not run, as other work kept it from
    the processor; None on a GPU, for which it waits.
    """

    result: Result
    steps: dict[str, NDArray[np.int64]]
    plans: list[PlannedStep]
    partial: bool
    disturbed_share: float | None = None


def run_workload(
    setup: LiveSetup,
    progress: Progress | None = None,
    machine: str = "this machine",
    time: TimeSource | None = None,
) -> LiveRun:
    """Serve the requests of the scenario's workload as they arrive; Ctrl-C ends it after the step in progress.

    ``time`` is real time, unless another is given.
    """
    clock, recorder = WallClock(time=time), Recorder()
    began_ns = thread_time_ns()
    cluster = setup.replica(clock, recorder, keep_plans=True)
    replica = cluster.replicas[0]
    assert isinstance(replica, LiveReplica)
    with _stopped_by_interrupt(clock):
        result = setup.simulation.run_on(clock, recorder, cluster, progress, machine)
    steps = replica.live.times.columns()
    busy_ns, worked_ns = int(steps["step_ns"].sum()), thread_time_ns() - began_ns
    disturbed = None if setup.device.type != "cpu" or not busy_ns else max(1 - worked_ns / busy_ns, 0.0)
    summary = _with_what_was_measured(result.summary, steps, clock.stopping)
    return LiveRun(replace(result, summary=summary), steps, replica.plans or [], clock.stopping, disturbed)


def _with_what_was_measured(
    summary: dict[str, Any], steps: dict[str, NDArray[np.int64]], partial: bool
) -> dict[str, Any]:
    busy_ns = int(steps["step_ns"].sum())
    share = 1 - int(steps["forward_ns"].sum()) / busy_ns if busy_ns else None
    use = {**summary["utilisation"], "host_share_of_busy": share}
    notices = [*summary["notices"], *([PARTIAL] if partial else [])]
    return {**summary, "utilisation": use, "notices": notices, "partial": partial}


@contextmanager
def _stopped_by_interrupt(clock: WallClock) -> Iterator[None]:
    """Let Ctrl-C stop the clock; a second one ends the program as ever. Only the main thread hears of it."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        clock.stop()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # another thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
