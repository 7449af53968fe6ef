"""A workload made of random arrivals and lengths, produced as it is consumed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simcore.core.errors import InputError
from simcore.workload.arrivals import ArrivalProcess
from simcore.workload.batch import Int64Array, RequestBatch
from simcore.workload.pairs import LengthPairs
from simcore.workload.streams import random_stream

BATCH_REQUESTS = 65_536
_LAST_NS = 9.2e18  # about what 64 bits can hold: 291 years


@dataclass(frozen=True, slots=True)
class SyntheticOpenLoop:
    """Random requests: ``requests`` of them, or those that arrive before ``duration_ns``; one of the two is given.

    The same seed gives the same requests, whatever ``batch_requests``, the number produced at a time.
    """

    arrivals: ArrivalProcess
    lengths: LengthPairs
    seed: int
    requests: int | None = None
    duration_ns: int | None = None
    batch_requests: int = BATCH_REQUESTS

    @property
    def notices(self) -> tuple[str, ...]:
        """What a user should know of the lengths."""
        return self.lengths.notices

    def batches(self) -> Iterator[RequestBatch]:
        """The requests in order of arrival. Raises InputError if arrivals are so rare that the clock runs over."""
        draw_lengths = self.lengths.start(self.seed)
        for arrival_ns in self._arrival_batches():
            prompt_tokens, output_tokens = draw_lengths(len(arrival_ns))
            yield RequestBatch(arrival_ns, prompt_tokens, output_tokens)

    def _arrival_batches(self) -> Iterator[Int64Array]:
        random = random_stream(self.seed, "arrivals")
        work, latest_ns, produced = 0.0, 0, 0
        while self.requests is None or produced < self.requests:
            count = self.batch_requests if self.requests is None else min(self.batch_requests, self.requests - produced)
            gaps = self.arrivals.unit_gaps(random, count)
            # Adding the carry to the first gap keeps the order of additions, so batches do not change the sums.
            gaps[0] += work
            cumulative = np.cumsum(gaps)
            with np.errstate(over="ignore"):  # infinitely late is too late, and refused below
                nanoseconds = np.rint(self.arrivals.seconds_at(cumulative) * 1e9)
            if self.requests is not None and nanoseconds[-1] > _LAST_NS:
                raise InputError("workload.requests", self.requests, "so few that all arrive within 291 years")
            arrival_ns = np.minimum(nanoseconds, _LAST_NS).astype(np.int64)
            # Rounding at a change of phase could step back by a nanosecond.
            arrival_ns[0] = max(arrival_ns[0], latest_ns)
            np.maximum.accumulate(arrival_ns, out=arrival_ns)
            work, latest_ns, produced = float(cumulative[-1]), int(arrival_ns[-1]), produced + count
            if self.duration_ns is not None and latest_ns >= self.duration_ns:
                in_time = arrival_ns[: np.searchsorted(arrival_ns, self.duration_ns, side="left")]
                if len(in_time):
                    yield in_time
                return
            yield arrival_ns
