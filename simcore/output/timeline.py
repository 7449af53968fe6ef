"""A run as a timeline that opens in ui.perfetto.dev: steps, queues, memory, transfers and the first requests.

The format is Chrome's ("Trace Event Format", Google, 2016), which Perfetto reads: a process per replica with its steps
and transfers as complete events ("X") and its counters ("C"), requests as nested asynchronous events ("b", "e"), one
per phase.
Times are whole microseconds from the start of the run.
"""

import json
from collections.abc import Iterator
from math import isnan, nan
from os import PathLike
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from simcore.core.clock import NS_PER_S
from simcore.core.errors import InputError
from simcore.core.files import writing
from simcore.core.result import Columns, Result
from simcore.metrics.step_bins import time_passed
from simcore.output.cluster_text import replica_name
from simcore.output.fault_tracks import fault_events
from simcore.output.fleet_tracks import fleet_events, is_name
from simcore.output.transfer_tracks import track_names, transfer_events

Event = dict[str, Any]

_NOTES_PID = 1
_FIRST_REPLICA_PID = 2
_STEPS_TID = 1
_MORE_STEPS_TID = 1000
"""The tracks of further batches in flight, after those of links."""
# At most a quarter of all events tells of requests. One request takes eight: begin and end of itself and three phases.
_REQUESTS_SHARE = 4
_EVENTS_PER_REQUEST = 8
# A quarter of transfers, and an eighth of what replicas go through, where there are any.
_TRANSFERS_SHARE = 4
_FLEET_SHARE = 8
# Column, name of the counter, name of its unit; Perfetto shows the two names as one.
_COUNTERS = (
    ("running_requests", "running", "requests"),
    ("waiting_requests", "waiting", "requests"),
    ("used_blocks", "KV blocks", "used"),
)
_MEMORY = [column for column, _, _ in _COUNTERS].index("used_blocks")
_MOST_POINTS, _POINTS_TO_PEAK = 64, 200
"""How finely KV memory is drawn as it fills during a row: at most so many points, each a part of the peak apart."""
_STEP_ARGS = (
    "steps",
    "prefill_tokens",
    "decoding_requests",
    "running_requests",
    "waiting_requests",
    "used_blocks",
    "context_tokens",
    "preempted_requests",
)


def write_timeline(result: Result, target: TextIO | str | PathLike[str], max_events: int = 200_000) -> None:
    """Write the timeline to a text stream or a path, with at most ``max_events`` events besides the names of tracks.

    Requests are those that arrived first, steps those that began first; what the limit leaves out is stated in an
    instant event where the steps break off, and in ``otherData``. The same result gives the same bytes. Raises
    ``InputError`` for a limit below 1, ``FileError`` if the path cannot be written.
    """
    if max_events < 1:
        raise InputError("max_events", max_events, "a whole number of at least 1")
    if isinstance(target, str | PathLike):
        with writing(target), open(target, "w", encoding="utf-8") as stream:
            _write(result, stream, max_events)
    else:
        _write(result, target, max_events)


def _write(result: Result, stream: TextIO, max_events: int) -> None:
    requests, steps = result.requests, result.steps
    all_requests, all_rows = len(requests["request_id"]), len(steps["start_s"])
    kept_requests = min(all_requests, max_events // _REQUESTS_SHARE // _EVENTS_PER_REQUEST)
    changed, idle_after = _counter_changes(steps)
    events_upto = np.cumsum(1 + changed.sum(axis=1) + len(_COUNTERS) * idle_after + _points(steps))
    all_transfers = len(result.transfers["link"]) if result.transfers else 0
    kept_transfers = min(all_transfers, max_events // _TRANSFERS_SHARE)
    phases = fleet_events(result.fleet, max_events // _FLEET_SHARE, _NOTES_PID, _FIRST_REPLICA_PID)
    drawn = sum(not is_name(event) for event in phases)
    left_for_steps = max_events - kept_requests * _EVENTS_PER_REQUEST - kept_transfers - drawn
    kept_rows = _rows_within(events_upto, left_for_steps)
    other: dict[str, Any] = {"requests": all_requests, "rows_of_steps": all_rows}
    if all_transfers:
        other["transfers"] = all_transfers
    notes: list[Event] = []
    if kept_rows < all_rows or kept_requests < all_requests or kept_transfers < all_transfers:
        kept_rows = _rows_within(events_upto, left_for_steps - 1)
        missing = {"requests": all_requests - kept_requests, "rows_of_steps": all_rows - kept_rows}
        other |= {"left_out": missing, "max_events": max_events}
        cut_us = _us(float(steps["start_s"][kept_rows])) if kept_rows < all_rows else _us(_end_s(result))
        text = f"left out: {missing['rows_of_steps']} later rows of steps, {missing['requests']} later requests"
        if all_transfers:
            missing["transfers"] = all_transfers - kept_transfers
            text += f", {missing['transfers']} later transfers"
        told = {"name": f"{text} (limit {max_events} events)", "ts": cut_us, "args": missing}
        notes.append({"ph": "i", "s": "g", "pid": _NOTES_PID, "tid": _STEPS_TID, **told})
    stream.write(f'{{"displayTimeUnit":"ms","otherData":{_json(other)},"traceEvents":[')
    separator = "\n"
    for events in (
        map(_json, _names(result, bool(notes))),
        map(_json, phases + notes),
        _step_events(steps, kept_rows, changed, idle_after),
        map(_json, transfer_events(result.transfers, kept_transfers, _FIRST_REPLICA_PID)),
        map(_json, fault_events(result.summary, _end_s(result), _FIRST_REPLICA_PID)),
        _request_events(requests, kept_requests, _us(_end_s(result))),
    ):
        for event in events:
            stream.write(separator)
            stream.write(event)
            separator = ",\n"
    stream.write("\n]}\n")


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _end_s(result: Result) -> float:
    ends = [result.steps["end_s"], result.requests["arrival_s"], result.requests["end_s"]]
    return float(np.nanmax(np.concatenate([[0.0], *ends])))


def _rows_within(events_upto: NDArray[np.int64], limit: int) -> int:
    return int(np.searchsorted(events_upto, limit, side="right"))


def _counter_changes(steps: Columns) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which counters (columns) change at the start of each row of steps, and after which rows its replica is idle.

    An idle replica's counters are 0; the first row of a replica counts as a change of all.
    """
    by_replica = np.argsort(steps["replica"], kind="stable")
    replica = steps["replica"][by_replica]
    start_ns = np.rint(steps["start_s"][by_replica] * NS_PER_S)
    end_ns = np.rint(steps["end_s"][by_replica] * NS_PER_S)
    values = np.stack([steps[column][by_replica] for column, _, _ in _COUNTERS], axis=1)
    last = np.ones(len(replica), dtype=np.bool_)
    last[:-1] = replica[1:] != replica[:-1]
    idle = last.copy()
    idle[:-1] |= start_ns[1:] > end_ns[:-1]
    shown = values[:-1].copy()
    shown[:, _MEMORY] = np.where(
        _points(steps)[by_replica] > 0, steps["used_blocks_at_end"][by_replica], values[:, _MEMORY]
    )[:-1]
    before = np.where(idle[:-1, np.newaxis], 0, shown)
    changes = np.ones(values.shape, dtype=np.bool_)
    changes[1:] = (values[1:] != before) | last[:-1, np.newaxis]
    changed, idle_after = np.empty_like(changes), np.empty_like(idle)
    changed[by_replica], idle_after[by_replica] = changes, idle
    return changed, idle_after


def _names(result: Result, with_notes: bool) -> Iterator[Event]:
    replicas = np.union1d(result.steps["replica"], result.requests["replica"]).astype(np.int64).tolist()
    processes = [(_FIRST_REPLICA_PID + replica, replica_name(result.summary, replica)) for replica in replicas]
    if with_notes:
        processes.insert(0, (_NOTES_PID, "about this timeline"))
    for pid, name in processes:
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        track = "notes" if pid == _NOTES_PID else "steps"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": _STEPS_TID, "args": {"name": track}}
        if pid != _NOTES_PID:
            yield from track_names(result.transfers, pid, pid - _FIRST_REPLICA_PID)


def _step_events(steps: Columns, rows: int, changed: NDArray[np.bool_], idle_after: NDArray[np.bool_]) -> Iterator[str]:
    """Rows of steps with their counters, as JSON: written out by hand, as there are many."""
    columns = {name: column[:rows].tolist() for name, column in steps.items()}
    changed_rows, idle_rows = changed[:rows].tolist(), idle_after[:rows].tolist()
    tids, points = _tracks(columns), _points(steps).tolist()
    for row in range(rows):
        pid = _FIRST_REPLICA_PID + columns["replica"][row]
        start_us, end_us = _us(columns["start_s"][row]), _us(columns["end_s"][row])
        args = {name: columns[name][row] for name in _STEP_ARGS}
        told = ",".join([f'"{name}":{value}' for name, value in args.items()])
        yield (
            f'{{"ph":"X","name":"{_step_name(args)}","ts":{start_us},"dur":{end_us - start_us},'
            f'"pid":{pid},"tid":{tids[row]},"args":{{{told}}}}}'
        )
        for (column, name, unit), changes in zip(_COUNTERS, changed_rows[row], strict=True):
            if changes:
                yield _counter(pid, start_us, name, unit, args[column])
        if points[row]:
            yield from _filling({name: column[row] for name, column in columns.items()}, points[row], pid)
        if idle_rows[row]:
            for _, name, unit in _COUNTERS:
                yield _counter(pid, end_us, name, unit, 0)


def _points(steps: Columns) -> NDArray[np.int64]:
    """How many points of a row of steps show KV memory as it fills, beside the one at its start."""
    change = np.abs(steps["used_blocks_at_end"] - steps["used_blocks"])
    apart = max(int(steps["used_blocks_at_end"].max(initial=0)) // _POINTS_TO_PEAK, 1)
    points: NDArray[np.int64] = np.where(steps["steps"] > 1, np.minimum(change // apart, _MOST_POINTS), 0)
    return points


def _filling(row: dict[str, Any], points: int, pid: int) -> Iterator[str]:
    """KV memory from the first step of a row to the last, in which it is as full as it gets."""
    _, name, unit = _COUNTERS[_MEMORY]
    shares = np.arange(1, points + 1) / points
    steps_share = shares * (row["steps"] - 1) / row["steps"]
    passed = time_passed(np.array(row["first_step_s"]), np.array(row["last_step_s"]), steps_share)
    at_s = row["start_s"] + passed * (row["end_s"] - row["start_s"])
    blocks = row["used_blocks"] + shares * (row["used_blocks_at_end"] - row["used_blocks"])
    for time_s, used in zip(at_s.tolist(), blocks.tolist(), strict=True):
        yield _counter(pid, _us(time_s), name, unit, round(used))


def _tracks(columns: dict[str, list[Any]]) -> list[int]:
    """A track for the steps of each batch in flight: the first that is free, so that none overlap."""
    free_s: dict[int, list[float]] = {}
    tids = []
    for replica, start_s, end_s in zip(columns["replica"], columns["start_s"], columns["end_s"], strict=True):
        tracks = free_s.setdefault(replica, [])
        track = next((place for place, free in enumerate(tracks) if free <= start_s), len(tracks))
        tracks[track : track + 1] = [end_s]
        tids.append(_STEPS_TID if track == 0 else _MORE_STEPS_TID + track)
    return tids


def _step_name(args: dict[str, int]) -> str:
    parts = []
    if args["prefill_tokens"]:
        parts.append(f"prefill {args['prefill_tokens']}")
    if args["decoding_requests"]:
        parts.append(f"decode {args['decoding_requests']}")
    name = " + ".join(parts) or "no tokens"
    return f"{name}, {args['steps']} steps" if args["steps"] > 1 else name


def _counter(pid: int, ts_us: int, name: str, unit: str, value: int) -> str:
    return f'{{"ph":"C","name":"{name}","ts":{ts_us},"pid":{pid},"tid":{_STEPS_TID},"args":{{"{unit}":{value}}}}}'


def _request_events(requests: Columns, count: int, run_end_us: int) -> Iterator[str]:
    """The first ``count`` requests: what was turned away on arrival as an instant, all others with their phases.

    What the end of the run cut off lasts to the end of the run.
    """
    columns = {name: column[:count].tolist() for name, column in requests.items()}
    for row in range(count):
        request = {name: column[row] for name, column in columns.items()}
        number, pid = request["request_id"], _FIRST_REPLICA_PID + request["replica"]
        args = {name: request[name] for name in ("request_id", "state", "prompt_tokens", "output_tokens")}
        if request["reason"]:
            args["reason"] = request["reason"]
        if request["state"] == "rejected" and request["end_s"] == request["arrival_s"]:
            yield _json(
                {
                    "ph": "i",
                    "s": "p",
                    "name": f"request {number} rejected",
                    "ts": _us(request["arrival_s"]),
                    "pid": pid,
                    "tid": _STEPS_TID,
                    "args": args,
                }
            )
            continue
        starts: tuple[tuple[str, float], ...] = (
            ("queue", request["arrival_s"]),
            ("prefill", request["first_scheduled_s"]),
            ("decode", request["first_token_s"]),
        )
        if not isnan(request.get("landed_s", nan)):
            starts = (*starts[:2], ("handover", request["first_token_s"]), ("decode", request["landed_s"]))
        begun = [(phase, _us(start_s)) for phase, start_s in starts if not isnan(start_s)]
        end_us = run_end_us if isnan(request["end_s"]) else _us(request["end_s"])
        ends_us = [*(start_us for _, start_us in begun[1:]), end_us]
        yield _span("b", "request", number, pid, begun[0][1], args | {"preemptions": request["preemptions"]})
        for (phase, start_us), phase_end_us in zip(begun, ends_us, strict=True):
            yield _span("b", phase, number, pid, start_us)
            yield _span("e", phase, number, pid, phase_end_us)
        yield _span("e", "request", number, pid, end_us)


def _span(kind: str, name: str, number: int, pid: int, ts_us: int, args: dict[str, Any] | None = None) -> str:
    told = "" if args is None else f',"args":{_json(args)}'
    return (
        f'{{"ph":"{kind}","cat":"request","id":{number},"name":"{name}","ts":{ts_us},"pid":{pid},"tid":{_STEPS_TID}'
        f"{told}}}"
    )
