"""A steady clock passes by work done, whatever the machine's speed."""

import pytest

from live.engine.wall_clock import BusyTime
from live.measuring.clocks import MeasuringClock, SteadyClock
from simcore.core.errors import FileError


class Machine:
    """Time that passes as told, and a reference whose time is told as well."""

    def __init__(self) -> None:
        self.now_ns, self.reference_s = 0, 0.01

    def seconds(self, now_ns):
        self.now_ns += round(self.reference_s * 1e9)
        return self.reference_s


def steady(machine):
    clock = SteadyClock(raw_ns=lambda: machine.now_ns, _work=machine)
    clock.settle()
    return clock


def test_work_takes_the_same_time_on_a_machine_that_has_become_slower():
    machine = Machine()
    clock = steady(machine)
    began_ns = clock.now_ns()
    machine.now_ns += 1_000_000_000
    assert clock.now_ns() - began_ns == 1_000_000_000
    machine.reference_s = 0.02
    before_ns = clock.now_ns()
    clock.settle()
    assert clock.now_ns() == before_ns
    machine.now_ns += 2_000_000_000
    assert clock.now_ns() - before_ns == 1_000_000_000
    assert clock.slowness == [1.0, 2.0]


def test_the_reference_is_not_timed_again_at_once():
    machine = Machine()
    clock = steady(machine)
    machine.now_ns += 1_000
    clock.settle()
    assert clock.slowness == [1.0]


def test_waits_are_skipped_on_any_clock():
    machine = Machine()
    time = BusyTime(steady(machine))
    before_ns = time.now_ns()
    time.wait(None, 500)
    machine.now_ns += 300_000_000
    time.between_events()
    assert time.now_ns() - before_ns == 300_000_500


def test_a_folder_keeps_the_first_speed(tmp_path):
    first = SteadyClock.kept_in(tmp_path / "new")
    assert SteadyClock.kept_in(tmp_path / "new").reference_s == first.reference_s
    assert SteadyClock.of_folder(tmp_path / "new").reference_s == first.reference_s > 0


@pytest.mark.parametrize(
    "text", ["", "{}", '{"reference_s": -1}', '{"reference_s": 1e999}', "[1]", '{"reference_s": "x"}']
)
def test_nonsense_is_no_speed(tmp_path, text):
    (tmp_path / "reference.json").write_text(text)
    with pytest.raises(FileError, match="holds no reference_s"):
        SteadyClock.of_folder(tmp_path)


def test_a_folder_without_a_speed_is_refused(tmp_path):
    with pytest.raises(FileError):
        SteadyClock.of_folder(tmp_path)


def test_the_host_clock_moves_on():
    clock = MeasuringClock()
    before_ns = clock.now_ns()
    clock.settle()
    assert clock.now_ns() >= before_ns
    assert clock.waits_count
