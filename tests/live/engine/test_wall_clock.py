"""The clock on real time, and runs that are stopped on it."""

import threading
from pathlib import Path
from time import monotonic

from fidelity.decisions import first_difference, replayed
from live.engine.replica import LiveReplica
from live.engine.setup import live_cluster
from live.engine.wall_clock import WallClock
from simcore.build.simulation import Simulation
from simcore.output.run_folder import check_destination, write_run_folder
from simcore.recording.recorder import Recorder
from tests.live.engine.fake_model import VOCABULARY, FakeRunner, ManualTime, TokenMemory
from tests.live.engine.test_same_decisions import document


def test_events_happen_in_real_time_and_calls_of_other_threads_among_them() -> None:
    clock, seen = WallClock(), []
    began = monotonic()
    clock.call_at(60_000_000, lambda: seen.append("event"))
    caller = threading.Timer(0.01, lambda: clock.call(lambda: seen.append("call")))
    caller.start()
    clock.run()
    caller.join()
    assert seen == ["call", "event"]
    assert monotonic() - began >= 0.06


def test_a_clock_that_stays_open_waits_until_it_is_stopped() -> None:
    clock, seen = WallClock(stays_open=True), []
    thread = threading.Thread(target=clock.run)
    thread.start()
    clock.call(lambda: seen.append(1))
    clock.call(clock.stop)
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert seen == [1]


class StoppingRunner(FakeRunner):
    """Stops the clock in its tenth step, as Ctrl-C would."""

    clock: WallClock
    steps = 0

    def run(self, sequences):  # type: ignore[no-untyped-def]
        self.steps += 1
        if self.steps == 10:
            self.clock.stop()
        return super().run(sequences)


def test_a_run_that_is_stopped_ends_after_its_step_and_can_be_told(tmp_path: Path) -> None:
    simulation = Simulation.prepare({"engine": "servetwin-live", **document()}, Path())
    time = ManualTime()
    clock, recorder = WallClock(time=time), Recorder()
    runner = StoppingRunner(time, TokenMemory(simulation.total_blocks, 4))
    runner.clock = clock
    cluster = live_cluster(simulation, clock, recorder, runner, VOCABULARY, keep_plans=True, check=True)
    (replica,) = cluster.replicas
    assert isinstance(replica, LiveReplica)
    runner.replica = replica
    result = simulation.run_on(clock, recorder, cluster)
    steps = replica.live.times.columns()["step_ns"].tolist()
    assert len(steps) == 10
    assert result.summary["counts"]["unfinished"] > 0
    write_run_folder(result, tmp_path / "run")
    check_destination(tmp_path / "run")
    assert replica.plans is not None
    assert first_difference(replica.plans, replayed(simulation, steps).plans) is None
