"""What went wrong with replicas, as a track of each in a timeline."""

from collections.abc import Iterator, Mapping
from typing import Any

_FAULTS_TID = 2000
"""After the tracks of steps, of links and of further batches."""


def fault_events(summary: Mapping[str, Any], end_s: float, first_pid: int) -> Iterator[dict[str, Any]]:
    """Faults, and times for which replicas were ejected, as complete events; those of no replica are left out."""
    found = [(event["name"], event) for event in summary.get("faults", {}).get("events", ()) if not event["void"]]
    found += [("ejected", event) for event in summary.get("gateway", {}).get("ejections", ())]
    of_replicas = [(name, event) for name, event in found if event["replica"] is not None]
    for replica in sorted({event["replica"] for _, event in of_replicas}):
        track = {"ph": "M", "name": "thread_name", "pid": first_pid + replica, "tid": _FAULTS_TID}
        yield {**track, "args": {"name": "faults"}}
    for name, event in of_replicas:
        until_s = end_s if event["until_s"] is None else min(event["until_s"], end_s)
        start_us = round(event["at_s"] * 1e6)
        yield {
            "ph": "X",
            "name": name,
            "ts": start_us,
            "dur": max(round(until_s * 1e6) - start_us, 0),
            "pid": first_pid + event["replica"],
            "tid": _FAULTS_TID,
            "args": {key: value for key, value in event.items() if key.endswith("_requests")},
        }
