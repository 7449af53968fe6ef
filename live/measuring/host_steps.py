"""What the engine's host does in steps beside the model's pass: planning, inputs, handing out tokens."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from live.engine.replica import LiveReplica
from live.engine.setup import LiveSetup
from live.engine.wall_clock import TimeSource, WallClock
from simcore.recording.recorder import Recorder
from simcore.workload.batch import RequestBatch
from simcore.workload.in_memory import InMemoryOpenLoop

_PROMPT_TOKENS = 20
HOST_PARTS = ("between", "inputs", "output")
"""Parts of a step that are no pass and no sampling."""


def host_steps(
    setup: LiveSetup, batches: tuple[int, ...], steps: int, time: TimeSource | None = None
) -> dict[str, NDArray[np.int64]]:
    """Times and counts of steps of so many requests at once, each for about ``steps`` tokens."""
    parts = []
    for batch in batches:
        requests = RequestBatch(
            np.zeros(batch, dtype=np.int64),
            np.full(batch, _PROMPT_TOKENS, dtype=np.int64),
            np.full(batch, steps, dtype=np.int64),
        )
        simulation = replace(setup.simulation, workload=InMemoryOpenLoop(requests))
        clock, recorder = WallClock(time=time), Recorder()
        cluster = replace(setup, simulation=simulation).replica(clock, recorder)
        (replica,) = cluster.replicas
        assert isinstance(replica, LiveReplica)
        simulation.run_on(clock, recorder, cluster)
        parts.append(replica.live.times.columns())
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
