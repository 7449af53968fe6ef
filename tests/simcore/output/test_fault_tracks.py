"""Faults in a timeline, by hand."""

from simcore.output.fault_tracks import fault_events

SUMMARY = {
    "faults": {
        "events": [
            {"name": "crash", "replica": 1, "at_s": 2.0, "until_s": None, "interrupted_requests": 3, "void": False},
            {"name": "crash", "replica": 1, "at_s": 3.0, "until_s": 4.0, "interrupted_requests": 0, "void": True},
            {"name": "transfer-loss", "replica": None, "at_s": 3.0, "until_s": 4.0, "void": False},
        ]
    },
    "gateway": {"ejections": [{"replica": 0, "at_s": 1.0, "until_s": 9.0}]},
}


def test_each_fault_of_a_replica_is_on_its_track_for_as_long_as_it_lasts():
    events = list(fault_events(SUMMARY, 5.0, 2))
    assert [event["pid"] for event in events if event["ph"] == "M"] == [2, 3]
    told = [(event["name"], event["pid"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert told == [("crash", 3, 2_000_000, 3_000_000), ("ejected", 2, 1_000_000, 4_000_000)]
    assert events[2]["args"] == {"interrupted_requests": 3}


def test_without_faults_there_is_no_track():
    assert not list(fault_events({}, 5.0, 2))
