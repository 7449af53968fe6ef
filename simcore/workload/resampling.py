"""Other arrivals, distributed as those of a trace: blocks of its time, drawn with replacement.

Blocks begin anywhere in the recording and go on around its end (the circular block bootstrap of Politis and Romano,
1992), so every moment of it is as likely as any other. Within a block requests keep their order and their gaps, so
bursts stay what they are; what lasts longer than a block is lost.
"""

from dataclasses import replace

import numpy as np

from simcore.core.errors import InputError
from simcore.workload.batch import Int64Array, RequestBatch
from simcore.workload.contents import Contents
from simcore.workload.streams import random_stream

BLOCKS = 20
_FEWEST_REQUESTS = 2 * BLOCKS


def resampled(recorded: RequestBatch, seed: int) -> RequestBatch:
    """The requests of ``BLOCKS`` blocks of time, one after another, together as long as the recording.

    The same seed gives the same requests. Of a request drawn again, no token is one of the earlier copy; copies of one
    number have in common what the requests had. Raises InputError for a recording that is too short to be drawn from.
    """
    arrival_ns = recorded.arrival_ns
    too_short = InputError("workload.resample", True, f"a trace of at least {_FEWEST_REQUESTS} requests over some time")
    if len(recorded) < _FEWEST_REQUESTS or int(arrival_ns[-1] - arrival_ns[0]) < BLOCKS:
        raise too_short
    span_ns, block_ns = _span_ns(arrival_ns), block_length_ns(arrival_ns)
    drawn = np.zeros(len(recorded), dtype=np.int64)
    places, times, copies = [], [], []
    for position, start_ns in enumerate(random_stream(seed, "trace blocks").integers(span_ns, size=BLOCKS)):
        since_ns = (arrival_ns - start_ns) % span_ns
        chosen = np.flatnonzero(since_ns < block_ns)
        chosen = chosen[np.argsort(since_ns[chosen], kind="stable")]
        places.append(chosen)
        times.append(position * block_ns + since_ns[chosen])
        copies.append(drawn[chosen])
        drawn[chosen] += 1
    if not drawn.any():
        raise too_short
    requests = replace(recorded.at(np.concatenate(places)), arrival_ns=np.concatenate(times))
    if recorded.contents is None or requests.contents is None:
        return requests
    apart = recorded.contents.end(recorded.output_tokens) * np.concatenate(copies)
    return replace(requests, contents=_moved(requests.contents, apart))


def block_length_ns(arrival_ns: Int64Array) -> int:
    """How long a block is."""
    return -(-_span_ns(arrival_ns) // BLOCKS)


def _span_ns(arrival_ns: Int64Array) -> int:
    """The length of the recording, a mean gap after the last request included."""
    latest = int(arrival_ns[-1])
    return latest + max(1, (latest - int(arrival_ns[0])) // (len(arrival_ns) - 1))


def _moved(contents: Contents, by: Int64Array) -> Contents:
    """The same with a number of its own added to every identity of each request."""
    run_first = contents.run_first + np.repeat(by, np.diff(contents.offsets))
    return Contents(contents.offsets, run_first, contents.run_tokens, contents.output_first + by)
