"""Other arrivals, distributed as those of a trace: blocks of its time, drawn with replacement.

Blocks begin anywhere in the recording and go on around its end (the circular block bootstrap of Politis and Romano,
1992), so every moment of it is as likely as any other. Within a block requests keep their order and their gaps, so
bursts stay what they are; what lasts longer than a block is lost. Where a trace names chats, these are drawn whole, by
when they begin.
"""

from dataclasses import replace

import numpy as np

from simcore.core.errors import InputError
from simcore.workload.batch import Int64Array, RequestBatch
from simcore.workload.contents import Contents, exclusive_sums
from simcore.workload.sessions import FollowUps
from simcore.workload.streams import random_stream

BLOCKS = 20
_FEWEST_REQUESTS = 2 * BLOCKS


def resampled(recorded: RequestBatch, seed: int) -> RequestBatch:
    """The requests of ``BLOCKS`` blocks of time, one after another, together as long as the recording.

    The same seed gives the same requests. Of a request drawn again, no token is one of the earlier copy; copies of one
    number have in common what the requests had. Raises InputError for a recording that is too short to be drawn from.
    """
    places, times, copies = _drawn(recorded.arrival_ns, seed, "requests")
    return _copied(recorded, places, times, copies)


def resampled_chats(recorded: RequestBatch, chats: FollowUps, seed: int) -> tuple[RequestBatch, FollowUps]:
    """The same of whole chats: a turn comes as long after the first as it did, however long that is."""
    members = np.argsort(chats.session, kind="stable")
    starts = exclusive_sums(np.bincount(chats.session))
    first = members[starts[:-1]]
    by_begin = np.argsort(recorded.arrival_ns[first], kind="stable")
    drawn, times, copies = _drawn(recorded.arrival_ns[first][by_begin], seed, "chats")
    drawn = by_begin[drawn]
    turns = np.diff(starts)[drawn]
    of_copy = np.repeat(np.arange(len(drawn)), turns)
    copy_starts = exclusive_sums(turns)[:-1]
    within = np.arange(len(of_copy)) - copy_starts[of_copy]
    places = members[starts[:-1][drawn][of_copy] + within]
    since_first_ns = recorded.arrival_ns[places] - recorded.arrival_ns[first[drawn]][of_copy]
    arrival_ns = times[of_copy] + since_first_ns

    before = np.full(len(recorded), -1, dtype=np.int64)
    before[chats.followers] = np.repeat(np.arange(len(recorded)), np.diff(chats.offsets))
    rank = np.empty(len(recorded), dtype=np.int64)
    rank[members] = np.arange(len(recorded)) - starts[:-1][chats.session[members]]
    after = np.flatnonzero(before[places] >= 0)
    parents = copy_starts[of_copy[after]] + rank[before[places[after]]]
    follow_ups = FollowUps.of_pairs(parents, after, chats.delay_ns[places], of_copy)

    order = np.argsort(arrival_ns, kind="stable")
    requests = _copied(recorded, places[order], arrival_ns[order], copies[of_copy][order])
    return requests, follow_ups.in_order(order)


def _drawn(arrival_ns: Int64Array, seed: int, what: str) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The places that are drawn, when each comes, and how often it came before."""
    too_short = InputError("workload.resample", True, f"a trace of at least {_FEWEST_REQUESTS} {what} over some time")
    if len(arrival_ns) < _FEWEST_REQUESTS or int(arrival_ns[-1] - arrival_ns[0]) < BLOCKS:
        raise too_short
    span_ns, block_ns = _span_ns(arrival_ns), block_length_ns(arrival_ns)
    drawn = np.zeros(len(arrival_ns), dtype=np.int64)
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
    return np.concatenate(places), np.concatenate(times), np.concatenate(copies)


def _copied(recorded: RequestBatch, places: Int64Array, times: Int64Array, copies: Int64Array) -> RequestBatch:
    requests = replace(recorded.at(places), arrival_ns=times)
    if recorded.contents is None or requests.contents is None:
        return requests
    apart = recorded.contents.end(recorded.output_tokens) * copies
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
