"""What a live replica is made of."""

from pathlib import Path
from typing import Any

import pytest

from live.engine.setup import live_cluster
from live.engine.wall_clock import WallClock
from simcore.build.simulation import Simulation
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory import KVMemory
from simcore.recording.recorder import Recorder
from tests.live.engine.fake_model import VOCABULARY, FakeRunner, ManualTime, TokenMemory

BLOCKS, BLOCK_SIZE = 60, 4


def live_memory(caching: bool) -> KVMemory:
    document: dict[str, Any] = {
        "engine": "servetwin-live",
        "model": "smollm2-135m",
        "cluster": {"accelerator": "cpu-generic"},
        "memory": {"num_gpu_blocks": BLOCKS, "block_size_tokens": BLOCK_SIZE, "prefix_caching": caching},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "poisson", "rate_per_s": 1.0},
            "prompt_tokens": {"name": "fixed", "tokens": 8},
            "output_tokens": {"name": "fixed", "tokens": 8},
        },
    }
    time = ManualTime()
    runner = FakeRunner(time, TokenMemory(BLOCKS, BLOCK_SIZE))
    cluster = live_cluster(Simulation.prepare(document, Path()), WallClock(time=time), Recorder(), runner, VOCABULARY)
    return cluster.replicas[0].scheduler.memory


@pytest.mark.parametrize(("caching", "found"), [(True, 4), (False, 0)])
def test_the_prefix_cache_finds_no_block_that_was_never_computed(caching: bool, found: int) -> None:
    """A victim may lose its memory in the step that has just given it tokens: five were computed, four more granted."""
    memory = live_memory(caching)
    victim = Request(0, 0, 20, content=Content([Run(0, 20)], 1000))
    memory.admit(victim, 0, 5)
    victim.computed_tokens = 5
    memory.grow(victim, 4)
    memory.release(victim, granted_tokens=4, comes_back=True)
    victim.computed_tokens = 0
    assert memory.cached_prefix(victim) == (found, 0)
