"""Sessions: requests of which some are sent only after others have ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.workload.batch import Int64Array, RequestBatch
from simcore.workload.contents import exclusive_sums


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Which requests wait for which, one array element a request.

    The requests that wait for request i are ``followers[offsets[i]:offsets[i + 1]]``, all after i. A request that waits
    for ``waits_for`` others is sent ``delay_ns`` after the last of them has ended; one that waits for none begins a
    session. ``session`` numbers the sessions.
    """

    offsets: Int64Array
    followers: Int64Array
    waits_for: Int64Array
    delay_ns: Int64Array
    session: Int64Array

    def __len__(self) -> int:
        return len(self.session)

    @classmethod
    def of_pairs(cls, before: Int64Array, after: Int64Array, delay_ns: Int64Array, session: Int64Array) -> "FollowUps":
        """Each request of ``after`` waits for the one of ``before`` at the same place."""
        order = np.argsort(before, kind="stable")
        count = len(session)
        offsets = exclusive_sums(np.bincount(before, minlength=count))
        return cls(offsets, after[order], np.bincount(after, minlength=count), delay_ns, session)

    @classmethod
    def none(cls, count: int) -> "FollowUps":
        """Nobody waits: every request is a session of its own."""
        nobody, zero = np.empty(0, dtype=np.int64), np.zeros(count, dtype=np.int64)
        return cls.of_pairs(nobody, nobody, zero, np.arange(count, dtype=np.int64))

    @property
    def begins(self) -> NDArray[np.intp]:
        """The places of the requests that begin a session."""
        return np.flatnonzero(self.waits_for == 0)

    def in_order(self, order: NDArray[np.intp]) -> "FollowUps":
        """The same of the requests in another order, in which none precedes one that it waits for."""
        new_place = np.empty_like(order)
        new_place[order] = np.arange(len(order))
        before = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        pairs = new_place[before], new_place[self.followers]
        return FollowUps.of_pairs(*pairs, self.delay_ns[order], self.session[order])


def follow_ups_of_all(parts: Sequence[FollowUps]) -> FollowUps:
    """Those of the requests of all parts, one after another."""
    places = exclusive_sums(np.array([len(part) for part in parts], dtype=np.int64))[:-1]
    sessions = exclusive_sums(np.array([part.session.max(initial=-1) + 1 for part in parts], dtype=np.int64))[:-1]
    before = [np.repeat(np.arange(len(part)), np.diff(part.offsets)) + start for part, start in _zip(parts, places)]
    after = [part.followers + start for part, start in _zip(parts, places)]
    return FollowUps.of_pairs(
        np.concatenate(before),
        np.concatenate(after),
        np.concatenate([part.delay_ns for part in parts]),
        np.concatenate([part.session + start for part, start in _zip(parts, sessions)]),
    )


def _zip(parts: Sequence[FollowUps], starts: Int64Array) -> list[tuple[FollowUps, int]]:
    return list(zip(parts, starts.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Sessions:
    """Requests and who follows whom, all in memory (about 120 bytes a request).

    No request is sent before its ``arrival_ns``, which is when its session begins, or when it was recorded. It is zero
    where ``concurrency`` users begin sessions: each the next one that no other has begun, ``pause_ns`` after the end of
    the last request of the one before.
    """

    requests: RequestBatch
    follow_ups: FollowUps
    concurrency: int | None = None
    pause_ns: int = 0
    notices: tuple[str, ...] = ()
