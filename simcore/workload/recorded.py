"""A workload that replays a trace."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from simcore.errors import FileError, InputError
from simcore.workload.batch import Int64Array, RequestBatch
from simcore.workload.synthetic import BATCH_REQUESTS
from simcore.workload.traces import Columns, read_trace

_LATEST_NS = 9.2e18


@dataclass(frozen=True, slots=True)
class RecordedOpenLoop:
    """Requests as recorded, held in memory (24 bytes each), so that a broken row shows before anything runs.

    ``notices`` are sentences that a user should see: what was left out of the trace or put in order.
    """

    arrival_ns: Int64Array
    prompt_tokens: Int64Array
    output_tokens: Int64Array
    notices: tuple[str, ...] = field(default=())
    batch_requests: int = BATCH_REQUESTS

    def batches(self) -> Iterator[RequestBatch]:
        """The requests in order of arrival."""
        for start in range(0, len(self.arrival_ns), self.batch_requests):
            part = slice(start, start + self.batch_requests)
            yield RequestBatch(self.arrival_ns[part], self.prompt_tokens[part], self.output_tokens[part])


def replay(
    path: Path,
    format: str = "auto",
    columns: Columns | None = None,
    *,
    rate_scale: float = 1.0,
    window_s: tuple[float, float] | None = None,
    requests: int | None = None,
    sort: bool = False,
    skip_failed: bool = False,
) -> RecordedOpenLoop:
    """The requests of the trace at ``path``, ``rate_scale`` times as fast as recorded.

    ``window_s`` keeps requests from its start to just before its end, in seconds since the first request and before
    scaling; arrivals then count from the start of the window. At most ``requests`` are kept. ``sort`` and
    ``skip_failed`` are those of ``read_trace``. Raises FileError for a trace that cannot be read or has no arrival
    times, InputError for a window without a request.
    """
    start_ns, end_ns = (round(edge * 1e9) for edge in window_s) if window_s else (0, None)
    limit = requests if start_ns == 0 else None
    trace = read_trace(path, format, columns, sort=sort, skip_failed=skip_failed, until_ns=end_ns, limit=limit)
    if trace.arrival_ns is None:
        raise FileError(
            path, "has no arrival times, expected them, or its use as 'lengths: {name: empirical, file: ...}'"
        )
    first = int(np.searchsorted(trace.arrival_ns, start_ns))
    last = len(trace) if end_ns is None else int(np.searchsorted(trace.arrival_ns, end_ns))
    if requests is not None:
        last = min(last, first + requests)
    if first >= last:
        latest_s = int(trace.arrival_ns[-1]) / 1e9
        expected = f"a window with a request in it; the last one before its end arrives at {latest_s:g} s"
        raise InputError("workload.window_s", window_s, expected)
    arrival_ns = trace.arrival_ns[first:last] - start_ns
    if rate_scale != 1.0:
        with np.errstate(over="ignore"):  # infinitely late is too late
            scaled = np.rint(arrival_ns / rate_scale)
        if scaled[-1] > _LATEST_NS:
            raise InputError("workload.rate_scale", rate_scale, "a scale at which all arrive within 291 years")
        arrival_ns = scaled.astype(np.int64)
    notices = _notices(path, trace.failed, trace.out_of_order)
    return RecordedOpenLoop(arrival_ns, trace.prompt_tokens[first:last], trace.output_tokens[first:last], notices)


def _notices(path: Path, failed: int, out_of_order: int) -> tuple[str, ...]:
    notices = []
    if failed:
        notices.append(f"{path}: {failed} failed requests (no output token) were left out.")
    if out_of_order:
        notices.append(f"{path}: {out_of_order} requests were out of order and were put in order of arrival.")
    return tuple(notices)
