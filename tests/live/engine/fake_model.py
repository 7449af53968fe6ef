"""A model in no time: it keeps tokens where others keep keys and values, and makes time pass as it likes."""

import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from live.engine.replica import LiveReplica
from live.engine.setup import check_scenario, live_cluster
from live.engine.wall_clock import WallClock
from live.paging.step_batch import SequenceInput
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.recording.recorder import Recorder

VOCABULARY = 101


class ManualTime:
    """Time that passes when somebody waits, or says so."""

    def __init__(self) -> None:
        self.time_ns = 1_000

    def now_ns(self) -> int:
        return self.time_ns

    def between_events(self) -> None:
        pass

    def wait(self, woken: threading.Condition, duration_ns: int | None) -> None:
        assert duration_ns is not None, "the clock would wait for ever"
        self.time_ns += duration_ns


class TokenMemory:
    """Blocks of tokens, on the device and beside it."""

    def __init__(self, blocks: int, block_size: int, host_blocks: int = 0) -> None:
        self.block_size = block_size
        self.tokens = [[-1] * block_size for _ in range(blocks)]
        self.host = [[-1] * block_size for _ in range(host_blocks)]

    def copy(self, sources: Sequence[int], destinations: Sequence[int]) -> None:
        assert not {*sources} & {*destinations}
        for source, destination in zip(sources, destinations, strict=True):
            self.tokens[destination] = list(self.tokens[source])

    def swap_out(self, blocks: Sequence[int], host_blocks: Sequence[int]) -> None:
        for block, host in zip(blocks, host_blocks, strict=True):
            self.host[host] = list(self.tokens[block])

    def swap_in(self, host_blocks: Sequence[int], blocks: Sequence[int]) -> None:
        for host, block in zip(host_blocks, blocks, strict=True):
            self.tokens[block] = list(self.host[host])


class FakeRunner:
    """Writes the tokens of a step to their blocks, and lets a random time pass for it.

    It must find in memory, before each request's new tokens, all that came before them: ``said`` are the tokens of
    each request, set by whoever knows. The next token is the sum of a few before it.
    """

    def __init__(self, time: ManualTime, kv: TokenMemory, seed: int = 0) -> None:
        self.time, self.kv = time, kv
        self.random = Random(seed)
        self.replica: LiveReplica | None = None

    def run(self, sequences: Sequence[SequenceInput]) -> torch.Tensor:
        self.time.time_ns += self.random.choice((1, 1_000, self.random.randrange(1, 40_000_000)))
        size = self.kv.block_size
        for sequence in sequences:
            for place, token in enumerate(sequence.tokens, start=sequence.position):
                self.kv.tokens[sequence.block_table[place // size]][place % size] = int(token)
        rows = [self.row(sequence) for sequence in sequences if sequence.logit_tokens]
        self.check(sequences)
        return torch.stack(rows) if rows else torch.zeros(0, VOCABULARY)

    def row(self, sequence: SequenceInput) -> torch.Tensor:
        row = torch.zeros(VOCABULARY)
        row[sum(map(int, sequence.tokens)) % VOCABULARY] = 1.0
        return row

    def check(self, sequences: Sequence[SequenceInput]) -> None:
        """Everything that a request has in memory is its own."""
        assert self.replica is not None
        size, live = self.kv.block_size, self.replica.live.ends.sequences
        by_table = {id(sequence.block_table): sequence for sequence in sequences}
        assert len(by_table) == len(sequences)
        for request in self.replica.scheduler.state.running.values():
            table = self.replica.scheduler.memory.block_table(request)
            held = request.tokens_in_memory
            found = [self.kv.tokens[table[place // size]][place % size] for place in range(held)]
            assert found == list(map(int, live[request.number].between(0, held)))


def fake_live_run(document: dict[str, Any], seed: int) -> tuple[Simulation, LiveReplica, Result]:
    """A live run of a scenario by the fake model, on manual time, all books recounted after each step."""
    simulation = Simulation.prepare({"engine": "servetwin-live", **document}, Path())
    check_scenario(simulation)
    time = ManualTime()
    clock, recorder = WallClock(time=time), Recorder()
    space = 4000 if simulation.scenario.scheduler.preemption.mode == "swap" else 0
    kv = TokenMemory(simulation.total_blocks, simulation.scenario.memory.block_size_tokens, space)
    runner = FakeRunner(time, kv, seed)
    cluster = live_cluster(simulation, clock, recorder, runner, VOCABULARY, keep_plans=True, check=True)
    (replica,) = cluster.replicas
    assert isinstance(replica, LiveReplica)
    runner.replica = replica
    return simulation, replica, simulation.run_on(clock, recorder, cluster)
