"""Replicas that come and go on a timeline: a track of phases for each, and how many serve."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.recording.fleet_log import SERVING

_TID = 999
"""Between the tracks of links and those of further batches in flight."""


def fleet_events(fleet: Columns, most: int, notes_pid: int, first_pid: int) -> list[dict[str, Any]]:
    """The first phases, at most ``most`` events besides names of tracks; none where all replicas are there for good.

    How many serve stands with the notes, before the replicas.
    """
    if not fleet or ((fleet["phase"] == SERVING) & (fleet["start_s"] == 0)).all():
        return []
    kept = {name: column[: most // 3] for name, column in fleet.items()}
    return [*_names(kept, notes_pid, first_pid), *_phases(kept, first_pid), *_serving(kept, notes_pid)]


def is_name(event: dict[str, Any]) -> bool:
    """Whether an event names a track."""
    return bool(event["ph"] == "M")


def _names(fleet: Columns, notes_pid: int, first_pid: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": notes_pid, "args": {"name": "service"}}
    for replica in np.unique(fleet["replica"]).tolist():
        yield {"ph": "M", "name": "thread_name", "pid": first_pid + replica, "tid": _TID, "args": {"name": "phase"}}


def _phases(fleet: Columns, first_pid: int) -> Iterator[dict[str, Any]]:
    columns = (fleet[name].tolist() for name in ("replica", "phase", "start_s", "end_s"))
    for replica, phase, start_s, end_s in zip(*columns, strict=True):
        start_us, pid = round(start_s * 1e6), first_pid + replica
        yield {"ph": "X", "name": phase, "ts": start_us, "dur": round(end_s * 1e6) - start_us, "pid": pid, "tid": _TID}


def _serving(fleet: Columns, notes_pid: int) -> Iterator[dict[str, Any]]:
    serving = fleet["phase"] == SERVING
    times_s = np.concatenate((fleet["start_s"][serving], fleet["end_s"][serving]))
    steps = np.repeat([1, -1], serving.sum())
    at_s, place = np.unique(times_s, return_inverse=True)
    counts = np.cumsum(np.bincount(place, weights=steps)).astype(np.int64)
    for time_s, count in zip(at_s.tolist(), counts.tolist(), strict=True):
        yield {
            "ph": "C",
            "name": "serving",
            "ts": round(time_s * 1e6),
            "pid": notes_pid,
            "tid": _TID,
            "args": {"replicas": count},
        }
