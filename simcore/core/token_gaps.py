"""Gaps between successive tokens of all requests: far too many to keep one by one, so equal gaps are counted."""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
StepDurations = Int64Array | list[int]
"""How long each of consecutive steps takes, in nanoseconds."""

_BUFFER = 1 << 18
_CHUNKS = 64


def step_ends_ns(start_ns: int, durations_ns: StepDurations) -> list[int]:
    """When each of the steps ends that run one after the other from ``start_ns`` on."""
    whole = durations_ns if isinstance(durations_ns, list) else durations_ns.tolist()
    return list(accumulate(whole, initial=start_ns))[1:]


class CountedGaps(NamedTuple):
    """Gaps in nanoseconds, with the number of requests that saw each."""

    gaps_ns: Int64Array
    counts: Int64Array


class TokenGaps:
    """The gaps of one replica that end after ``since_ns``.

    A decode step gives all its requests the same gap, so a step is one entry, and steps of equally many requests share
    their count. Entries fill a buffer. Full, it is cut into chunks, in each of which equal gaps are merged; when chunks
    are many, neighbours are merged. So memory is bounded by the number of different gaps, while the chunks stay in
    order of time and cover equally many entries.
    """

    def __init__(self, since_ns: int = 0) -> None:
        self._since_ns = since_ns
        self._gaps = array("q")
        self._counts = array("q")
        self._steps = array("q")
        self._chunk_entries = _BUFFER // _CHUNKS
        self._chunks: list[CountedGaps] = []
        self._unfinished: list[CountedGaps] = []

    def add(self, end_ns: int, gap_ns: int, count: int) -> None:
        """Count one gap of ``count`` requests that ends at ``end_ns``."""
        if end_ns <= self._since_ns or not count:
            return
        self._gaps.append(gap_ns)
        self._counts.append(count)
        self._steps.append(1)
        if len(self._gaps) == _BUFFER:
            self._empty_buffer()

    def add_steps(self, start_ns: int, durations_ns: StepDurations, count: int) -> None:
        """Count the gaps of ``count`` requests over consecutive steps, which got a token at ``start_ns`` too."""
        steps = len(durations_ns)
        if start_ns < self._since_ns or len(self._gaps) + steps >= _BUFFER:
            for duration_ns in map(int, durations_ns):
                start_ns += duration_ns
                self.add(start_ns, duration_ns, count)
            return
        if isinstance(durations_ns, list):
            self._gaps.fromlist(durations_ns)
        else:
            self._gaps.frombytes(durations_ns.tobytes())
        self._counts.append(count)
        self._steps.append(steps)

    def chunks(self) -> list[CountedGaps]:
        """All gaps in chunks in order of time; a single chunk is in order of time itself, its gaps not merged."""
        rest = self._buffered()
        return [*self._chunks, merged([*self._unfinished, rest])] if self._chunks else [rest]

    def _buffered(self) -> CountedGaps:
        counts = np.array(self._counts, dtype=np.int64)
        return CountedGaps(np.array(self._gaps, dtype=np.int64), np.repeat(counts, self._steps))

    def _empty_buffer(self) -> None:
        gaps, counts = self._buffered()
        del self._gaps[:], self._counts[:], self._steps[:]
        piece = min(self._chunk_entries, _BUFFER)
        for start in range(0, _BUFFER, piece):
            stop = start + piece
            self._unfinished.append(_counted(gaps[start:stop], counts[start:stop]))
            if len(self._unfinished) * piece == self._chunk_entries:
                self._chunks.append(merged(self._unfinished))
                self._unfinished = []
        while len(self._chunks) > _CHUNKS and len(self._chunks) % 2 == 0:
            pairs = range(0, len(self._chunks), 2)
            self._chunks = [merged(self._chunks[index : index + 2]) for index in pairs]
            self._chunk_entries *= 2


def merged(chunks: Sequence[CountedGaps]) -> CountedGaps:
    """All gaps of some chunks, the different ones ascending."""
    gaps_ns = np.concatenate([chunk.gaps_ns for chunk in chunks])
    return _counted(gaps_ns, np.concatenate([chunk.counts for chunk in chunks]))


def split(chunks: Sequence[CountedGaps], parts: int) -> list[CountedGaps]:
    """The chunks of one replica as so many parts in order of time, nearly equal in entries."""
    if len(chunks) == 1:
        pieces = np.array_split(np.arange(len(chunks[0].gaps_ns)), parts)
        return [_counted(chunks[0].gaps_ns[piece], chunks[0].counts[piece]) for piece in pieces]
    return [merged([chunks[index] for index in part]) for part in np.array_split(np.arange(len(chunks)), parts)]


def _counted(gaps_ns: Int64Array, counts: Int64Array) -> CountedGaps:
    order = np.argsort(gaps_ns, kind="stable")
    gaps_ns, counts = gaps_ns[order], counts[order]
    if not len(gaps_ns):
        return CountedGaps(gaps_ns, counts)
    first = np.flatnonzero(np.concatenate(([True], gaps_ns[1:] != gaps_ns[:-1])))
    return CountedGaps(gaps_ns[first], np.add.reduceat(counts, first))
