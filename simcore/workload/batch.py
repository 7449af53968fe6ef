"""Requests in columns: how every workload, made or read, hands its requests to the simulator."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simcore.workload.contents import Contents
from simcore.workload.contents import Int64Array as Int64Array

NO_OUTPUT_LIMIT = 2**31 - 1
"""``max_output_tokens`` of a request whose client sets no limit: as long as any output may be."""

NO_TIMEOUT_NS = 2**63 - 1
"""How long a client waits that never gives up."""

LEAST_URGENT = 2**31 - 1
"""The greatest number that a priority may be."""


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """Consecutive requests of a workload, one array element each.

    ``arrival_ns`` is nanoseconds since the start, never decreasing, also across batches.
    ``output_tokens`` is the true length, which no policy ever sees; it never exceeds ``max_output_tokens``.

    The other columns are None where all requests have the default: ``tenant``, a position in ``tenants`` (which may
    name some that send nothing), else the tenant ""; ``priority``, 0 to LEAST_URGENT, else 0;
    ``max_output_tokens``, the limit that the client sets, else NO_OUTPUT_LIMIT; ``first_token_timeout_ns`` and
    ``timeout_ns``, how long after arrival the client gives up if it then has no token, or not the last, else
    NO_TIMEOUT_NS. ``contents`` is None where nothing is known of what requests contain; else its prompts are as long as
    ``prompt_tokens``.
    """

    arrival_ns: Int64Array
    prompt_tokens: Int64Array
    output_tokens: Int64Array
    tenant: Int64Array | None = None
    tenants: tuple[str, ...] = ()
    priority: Int64Array | None = None
    max_output_tokens: Int64Array | None = None
    contents: Contents | None = None
    first_token_timeout_ns: Int64Array | None = None
    timeout_ns: Int64Array | None = None

    def __post_init__(self) -> None:
        if self.contents is not None and not np.array_equal(self.contents.prompt_tokens, self.prompt_tokens):
            raise ValueError("contents whose prompts are not as long as prompt_tokens")

    def __len__(self) -> int:
        return len(self.arrival_ns)

    def at(self, places: slice | NDArray[np.intp]) -> "RequestBatch":
        """The requests at ``places``, in that order."""
        return RequestBatch(
            self.arrival_ns[places],
            self.prompt_tokens[places],
            self.output_tokens[places],
            None if self.tenant is None else self.tenant[places],
            self.tenants,
            None if self.priority is None else self.priority[places],
            None if self.max_output_tokens is None else self.max_output_tokens[places],
            None if self.contents is None else self.contents.at(places),
            None if self.first_token_timeout_ns is None else self.first_token_timeout_ns[places],
            None if self.timeout_ns is None else self.timeout_ns[places],
        )

    def cut_to_limits(self) -> "RequestBatch":
        """The same with every output ended at its request's limit, as an engine ends it."""
        if self.max_output_tokens is None:
            return self
        return replace(self, output_tokens=np.minimum(self.output_tokens, self.max_output_tokens))


class OpenLoop(Protocol):
    """Arrivals that do not wait for the service: a random process or a trace."""

    def batches(self) -> Iterator[RequestBatch]:
        """The requests in order of arrival, some thousands at a time; iterating again gives the same requests."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``concurrency`` clients, each sending its next request ``think_time_ns`` after its last one was answered.

    ``requests`` holds all requests in the order they are sent, their ``arrival_ns`` zero. ``notices`` are sentences on
    their lengths that a user should see.
    """

    concurrency: int
    think_time_ns: int
    requests: RequestBatch
    notices: tuple[str, ...] = ()
