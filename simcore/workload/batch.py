"""Requests in columns: how every workload, made or read, hands its requests to the simulator."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """Consecutive requests of a workload, one array element each.

    ``arrival_ns`` is nanoseconds since the start, never decreasing, also across batches.
    ``output_tokens`` is the true length, which no policy ever sees.
    """

    arrival_ns: Int64Array
    prompt_tokens: Int64Array
    output_tokens: Int64Array

    def __len__(self) -> int:
        return len(self.arrival_ns)


class OpenLoop(Protocol):
    """Arrivals that do not wait for the service: a random process or a trace."""

    def batches(self) -> Iterator[RequestBatch]:
        """The requests in order of arrival, some thousands at a time; iterating again gives the same requests."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``concurrency`` clients, each sending its next request ``think_time_ns`` after its last one was answered.

    ``requests`` holds all requests in the order they are sent, their ``arrival_ns`` zero.
    """

    concurrency: int
    think_time_ns: int
    requests: RequestBatch
