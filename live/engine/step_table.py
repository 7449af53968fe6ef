"""A small table of measured steps: batches by context, prompt chunks by what is before them, and both in one step."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from live.engine.replica import LiveReplica
from live.engine.setup import LiveSetup
from live.engine.wall_clock import TimeSource, WallClock
from simcore.recording.recorder import Recorder
from simcore.workload.batch import RequestBatch
from simcore.workload.in_memory import InMemoryOpenLoop

_OUTPUT_TOKENS = 6
_PROMPTS = (4, 24, 120, 480, 1900)
_TOKENS = 4096
"""The most prompt tokens of one measurement."""


def measured_steps(
    setup: LiveSetup, repeats: int = 1, most_tokens: int = _TOKENS, time: TimeSource | None = None
) -> dict[str, NDArray[np.int64]]:
    """The times and counts of steps of made-up requests, by the scenario's own scheduler.

    For each size of batch and length of prompt so many requests come, half of them while the others decode already, so
    that their steps are prompt chunks, both, and decodes. What is longer than memory or context allows is left out.
    ``time`` is real time, unless another is given.
    """
    parts = [_steps_of(setup, *shape, time) for _ in range(repeats) for shape in _shapes(setup, most_tokens)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _shapes(setup: LiveSetup, most_tokens: int) -> Iterator[tuple[int, int]]:
    """Requests at a time, and tokens of their prompts."""
    simulation = setup.simulation
    most_running = simulation.scenario.scheduler.batching.get("max_running_requests", 16)
    capacity = simulation.total_blocks * simulation.scenario.memory.block_size_tokens
    batch = 1
    while True:
        for prompt in _PROMPTS:
            longest = prompt + _OUTPUT_TOKENS
            fits = longest <= simulation.max_context_tokens and batch * (longest + 16) <= capacity
            if fits and (batch == 1 or batch * prompt <= most_tokens):
                yield batch, prompt
        if batch >= most_running:
            return
        batch = min(batch * 2, most_running)


def _steps_of(setup: LiveSetup, batch: int, prompt: int, time: TimeSource | None) -> dict[str, NDArray[np.int64]]:
    # Lengths differ a little, and those who come later come within the first steps.
    prompts = prompt + np.arange(batch) % 4
    outputs = np.full(batch, _OUTPUT_TOKENS)
    outputs[::2] += 2
    arrivals = np.where(np.arange(batch) < -(-batch // 2), 0, 1_000_000)
    requests = RequestBatch(arrivals.astype(np.int64), prompts.astype(np.int64), outputs.astype(np.int64))
    simulation = replace(setup.simulation, workload=InMemoryOpenLoop(requests))
    clock, recorder = WallClock(time=time), Recorder()
    cluster = replace(setup, simulation=simulation).replica(clock, recorder)
    (replica,) = cluster.replicas
    assert isinstance(replica, LiveReplica)
    simulation.run_on(clock, recorder, cluster)
    return replica.live.times.columns()
