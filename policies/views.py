"""What a policy may look at. The true output length of a request is not part of it."""

from collections.abc import Iterator
from typing import Protocol


class RequestView(Protocol):
    """One request, as the service knows it."""

    @property
    def number(self) -> int:
        """Its place in the order of arrival, from 0; unique in a run."""

    @property
    def arrival_s(self) -> float:
        """Seconds from the start of the run to its arrival at the service."""

    @property
    def prompt_tokens(self) -> int:
        """Length of its prompt."""

    @property
    def generated_tokens(self) -> int:
        """Output tokens delivered so far."""

    @property
    def preemptions(self) -> int:
        """How often it lost its KV memory so far."""


class RunningView(Protocol):
    """The requests that hold KV memory, in the order in which they were admitted."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[RequestView]: ...

    def __reversed__(self) -> Iterator[RequestView]: ...


class ReplicaView(Protocol):
    """One replica, between two steps."""

    @property
    def waiting_requests(self) -> int:
        """Requests in its queue."""

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory: those in prefill and those in decode."""

    @property
    def decoding_requests(self) -> int:
        """Requests whose prompt is done and that gain one token a step."""

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""

    @property
    def total_blocks(self) -> int:
        """KV blocks in all."""
