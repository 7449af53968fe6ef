"""Phases and replica-seconds, by hand."""

from simcore.recording.fleet_log import AT_FULL_PRICE, DRAINING, SERVING, STARTING, FleetLog

S = 10**9


def log():
    found = FleetLog()
    found.enter(0, SERVING, 0)
    found.enter(1, STARTING, 10 * S)
    found.enter(1, SERVING, 40 * S)
    found.enter(1, DRAINING, 60 * S)
    found.leave(1, 65 * S)
    return found


def test_a_replica_is_in_one_phase_at_a_time():
    found = log()
    assert [(row.phase, row.start_ns // S, row.end_ns and row.end_ns // S) for row in found.phases] == [
        ("serving", 0, None),
        ("starting", 10, 40),
        ("serving", 40, 60),
        ("draining", 60, 65),
    ]
    assert (found.phase_of(0), found.phase_of(1)) == ("serving", None)
    assert found.in_phase([SERVING]) == [0]


def test_seconds_are_counted_between_two_times():
    found = log()
    assert found.seconds_in([SERVING], 0.0, 100.0) == 100 + 20
    assert found.seconds_in(AT_FULL_PRICE, 0.0, 100.0) == 100 + 55
    assert found.seconds_in([STARTING], 30.0, 100.0) == 10
    assert found.seconds_in([STARTING], 50.0, 100.0) == 0
