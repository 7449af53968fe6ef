"""A workload that replays a trace."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from simcore.core.errors import FileError, InputError
from simcore.workload.batch import RequestBatch
from simcore.workload.in_memory import InMemoryOpenLoop
from simcore.workload.recorded_turns import recorded_follow_ups
from simcore.workload.resampling import BLOCKS, block_length_ns, resampled, resampled_chats
from simcore.workload.sessions import Sessions
from simcore.workload.traces import Columns, Trace, read_trace
from simcore.workload.traces.formats import assumed_of

_LATEST_NS = 9.2e18


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
    block_tokens: int | None = None,
    resample_seed: int | None = None,
    turns_wait: bool = False,
) -> InMemoryOpenLoop | Sessions:
    """The requests of the trace at ``path``, ``rate_scale`` times as fast as recorded.

    ``window_s`` keeps requests from its start to just before its end, in seconds since the first request and before
    scaling; arrivals then count from the start of the window. At most ``requests`` are kept. Of these, with a
    ``resample_seed``, blocks are drawn (``resampling``). Where ``turns_wait``, which needs a trace that names chats,
    no turn of a chat arrives before the answer to the one before. ``sort``, ``skip_failed``
    and ``block_tokens`` are those of ``read_trace``. Raises FileError for a trace that cannot be read or has no arrival
    times, InputError for a window without a request and a trace too short to draw from.
    """
    start_ns, end_ns = (round(edge * 1e9) for edge in window_s) if window_s else (0, None)
    limit = requests if start_ns == 0 else None
    trace = read_trace(
        path,
        format,
        columns,
        sort=sort,
        skip_failed=skip_failed,
        until_ns=end_ns,
        limit=limit,
        block_tokens=block_tokens,
    )
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
    kept = slice(first, last)
    recorded = RequestBatch(
        trace.arrival_ns[kept] - start_ns,
        trace.prompt_tokens[kept],
        trace.output_tokens[kept],
        None if trace.tenant is None else trace.tenant[kept],
        trace.tenants,
        None if trace.priority is None else trace.priority[kept],
        None if trace.max_output_tokens is None else trace.max_output_tokens[kept],
        None if trace.contents is None else trace.contents.at(kept),
    )
    cut = recorded.cut_to_limits()
    shortened = int(np.count_nonzero(cut.output_tokens < recorded.output_tokens))
    notices = _notices(path, trace, shortened)
    chats = None
    if trace.chat is not None and trace.follows is not None and (turns_wait or resample_seed is not None):
        chats = recorded_follow_ups(path, trace.chat[kept], trace.follows[kept])
    elif turns_wait:
        expected = f"recorded, since {path} does not say which requests follow which"
        raise InputError("workload.turns", "closed-loop", expected)
    if resample_seed is not None:
        block_s = block_length_ns(cut.arrival_ns) / 1e9
        what, whole = ("requests", "") if chats is None else ("chats", ", each of them whole")
        if chats is None:
            cut = resampled(cut, resample_seed)
        else:
            cut, chats = resampled_chats(cut, chats, resample_seed)
        notices += (
            f"{path}: {what} were drawn anew by the seed, as {BLOCKS} blocks of {block_s:.3g} s of recorded time, "
            f"with replacement, from anywhere in it and around its end{whole}.",
        )
    scaled = _scaled(cut, rate_scale)
    if chats is None or not turns_wait:
        return InMemoryOpenLoop(scaled, notices)
    waiting = len(scaled) - len(chats.begins)
    notices += (
        f"{path}: {waiting:,} turns of chats arrive as recorded, or with the answer before them if it is later.",
    )
    return Sessions(scaled, chats, notices=notices)


def _scaled(requests: RequestBatch, rate_scale: float) -> RequestBatch:
    if rate_scale == 1.0:
        return requests
    with np.errstate(over="ignore"):  # infinitely late is too late
        scaled = np.rint(requests.arrival_ns / rate_scale)
    if scaled[-1] > _LATEST_NS:
        raise InputError("workload.rate_scale", rate_scale, "a scale at which all arrive within 291 years")
    return replace(requests, arrival_ns=scaled.astype(np.int64))


def _notices(path: Path, trace: Trace, shortened: int) -> tuple[str, ...]:
    notices = list(assumed_of(path, trace.format))
    if trace.failed:
        notices.append(f"{path}: {trace.failed} failed requests (no output token) were left out.")
    if trace.out_of_order:
        notices.append(f"{path}: {trace.out_of_order} requests were out of order and were put in order of arrival.")
    if shortened:
        notices.append(f"{path}: {shortened} outputs are longer than their limit and end there.")
    return tuple(notices)
