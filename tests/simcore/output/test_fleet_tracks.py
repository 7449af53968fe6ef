"""Phases of replicas on a timeline."""

import numpy as np

from simcore.output.fleet_tracks import fleet_events

ROWS = [(0, "serving", 0.0, 10.0), (1, "starting", 2.0, 5.0), (1, "serving", 5.0, 8.0), (1, "draining", 8.0, 8.5)]


def fleet(rows):
    replica, phase, start_s, end_s = zip(*rows, strict=True)
    return {
        "replica": np.array(replica),
        "phase": np.array(phase),
        "start_s": np.array(start_s),
        "end_s": np.array(end_s),
    }


def test_phases_and_how_many_serve():
    events = fleet_events(fleet(ROWS), 100, notes_pid=1, first_pid=2)
    phases = [(event["name"], event["pid"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert phases == [
        ("serving", 2, 0, 10_000_000),
        ("starting", 3, 2_000_000, 3_000_000),
        ("serving", 3, 5_000_000, 3_000_000),
        ("draining", 3, 8_000_000, 500_000),
    ]
    counts = [(event["ts"], event["args"]["replicas"]) for event in events if event["ph"] == "C"]
    assert counts == [(0, 1), (5_000_000, 2), (8_000_000, 1), (10_000_000, 0)]


def test_the_limit_keeps_the_first():
    events = fleet_events(fleet(ROWS), 6, notes_pid=1, first_pid=2)
    assert len([event for event in events if event["ph"] != "M"]) <= 6
    assert [event["name"] for event in events if event["ph"] == "X"] == ["serving", "starting"]


def test_replicas_that_are_there_for_good_have_no_track():
    assert fleet_events({}, 100, 1, 2) == []
    assert fleet_events(fleet([(0, "serving", 0.0, 10.0), (1, "serving", 0.0, 10.0)]), 100, 1, 2) == []
