"""What a policy may look at. The true output length of a request is not part of it."""

from collections.abc import Iterator, Sequence
from typing import Protocol


class RequestView(Protocol):
    """One request, as the service knows it."""

    @property
    def number(self) -> int:
        """Its place in the order of arrival, from 0, or in a workload of sessions its place there; unique in a run."""

    @property
    def arrival_s(self) -> float:
        """Seconds from the start of the run to its arrival at the service."""

    @property
    def prompt_tokens(self) -> int:
        """Length of its prompt."""

    @property
    def max_output_tokens(self) -> int:
        """The most output tokens that it may generate."""

    @property
    def tenant(self) -> str:
        """Whose request it is; "" where nobody is named."""

    @property
    def priority(self) -> int:
        """Its level: 0 is the most urgent."""

    @property
    def generated_tokens(self) -> int:
        """Output tokens delivered so far."""

    @property
    def tokens_in_memory(self) -> int:
        """Tokens of it whose keys and values KV memory holds."""

    @property
    def preemptions(self) -> int:
        """How often it lost its KV memory so far."""


class RoutedRequestView(RequestView, Protocol):
    """One request as a router sees it when it arrives."""

    @property
    def session(self) -> int | None:
        """The number of its session in a workload of sessions, None where there are none."""

    def prefix_keys(self, block_tokens: int) -> Sequence[int]:
        """A key for each full block of its prompt: two are equal just if all tokens up to their ends are equal.

        There are none where nothing is known of what the prompt says.
        """


class CommittedView(Protocol):
    """A running request, as far as what it may still generate is concerned."""

    @property
    def max_output_tokens(self) -> int:
        """The most output tokens that it may generate."""

    @property
    def generated_tokens(self) -> int:
        """Output tokens known so far."""

    @property
    def ignores_eos(self) -> bool:
        """Whether it is sure to generate as many as it may."""


class GroupView(Protocol):
    """Requests that an ordering treats as one party: a tenant's, or those of one level.

    Counts are of one replica. Tokens served count once what is computed again after a preemption, seconds each time.
    """

    @property
    def name(self) -> str:
        """What the requests have in common."""

    @property
    def first(self) -> RequestView:
        """The waiting request that is next within the group."""

    @property
    def running_requests(self) -> int:
        """Its requests that hold KV memory."""

    @property
    def context_tokens(self) -> int:
        """Tokens in KV memory that its decoding requests hold."""

    @property
    def prompt_tokens_served(self) -> int:
        """Prompt tokens of its requests admitted so far."""

    @property
    def output_tokens_served(self) -> int:
        """Output tokens that its requests have got so far."""

    @property
    def service_s(self) -> float:
        """Seconds of the steps so far that its requests have got: each step's divided among the tokens it computed."""


class RunningView(Protocol):
    """The requests that hold KV memory, in the order in which they were admitted."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[RequestView]: ...

    def __reversed__(self) -> Iterator[RequestView]: ...


class ReplicaView(Protocol):
    """One replica, between two steps."""

    @property
    def waiting_requests(self) -> int:
        """Requests in its queue, and those that the scheduler does not see yet or whose memory is on its way."""

    @property
    def queued_requests(self) -> int:
        """Those of them that might be let in now, had they room."""

    @property
    def waiting_tokens(self) -> int:
        """Tokens that requests have to compute whom the scheduler sees in its queue; cached prefixes count too."""

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory: those in prefill and those in decode."""

    @property
    def decoding_requests(self) -> int:
        """Requests whose prompt is done and that gain one token a step."""

    @property
    def prefilling_requests(self) -> int:
        """Running requests whose prompt is unfinished."""

    @property
    def oldest_arrival_s(self) -> float | None:
        """When the request that is next to be admitted arrived, None if nobody waits."""

    @property
    def next_blocks(self) -> int | None:
        """KV blocks that the request that is next to be admitted needs, None if nobody waits."""

    @property
    def decode_steps(self) -> int:
        """Steps so far in which running requests decoded, of all batches in flight."""

    def step_s(self, prompt_tokens: int) -> float:
        """Seconds that a step is expected to take in which all that decode do, and so many prompt tokens are prefilled.

        The tokens are priced as a chunk of the prompt that is next.
        """

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""

    @property
    def total_blocks(self) -> int:
        """KV blocks in all."""


class RouterView(Protocol):
    """One replica as a router sees it when a request arrives; whatever is asked is as of now."""

    @property
    def waiting_requests(self) -> int:
        """Requests that it has taken in and that hold no KV memory, or wait in swap space."""

    @property
    def waiting_tokens(self) -> int:
        """Tokens that the requests in its queue have to compute; cached prefixes count too."""

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory: those in prefill and those in decode."""

    @property
    def running_tokens(self) -> int:
        """Tokens of running requests whose keys and values KV memory holds; a shared prefix counts for each."""

    @property
    def queue_delay_s(self) -> float:
        """Seconds from its arrival to its first step that the request waited which ran for the first time last.

        0 before any ran.
        """

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""

    @property
    def total_blocks(self) -> int:
        """KV blocks in all."""

    def prefix_keys(self, request: RoutedRequestView) -> Sequence[int]:
        """A key for each full block of a request's prompt, as block events of this replica name them; none if it has
        no such events."""

    def cached_tokens(self, request: RoutedRequestView) -> int:
        """Tokens of a request's prompt that it would find in the prefix cache, were it let in now."""


class MigrationView(RouterView, Protocol):
    """One replica as whoever moves running requests sees it."""

    @property
    def block_tokens(self) -> int:
        """Tokens of one KV block."""

    @property
    def next_blocks(self) -> int | None:
        """KV blocks that the request that is next to be admitted needs, None if nobody waits."""

    @property
    def decoding(self) -> Iterator[RequestView]:
        """Requests that decode, in the order in which they were admitted."""

    @property
    def is_moving(self) -> bool:
        """Whether a request is on its way from it or to it."""


class CachedBlockView(Protocol):
    """A full block of KV memory that can be found by what it holds."""

    @property
    def tokens_before(self) -> int:
        """Tokens of its prefix, itself left out."""

    @property
    def uses(self) -> int:
        """How many requests used it since it was cached: the one that computed it and those that found it."""

    @property
    def priority(self) -> int:
        """The level of the most urgent of these requests."""

    @property
    def recompute_flops(self) -> float:
        """Floating point operations that computing its tokens again would take."""

    @property
    def size_bytes(self) -> int:
        """KV memory that it takes."""


class ServiceView(Protocol):
    """The service as a whole, when a request arrives."""

    @property
    def waiting_requests(self) -> int:
        """Requests in the queues of all replicas."""

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory on any replica."""

    @property
    def kv_used_share(self) -> float:
        """Share of the KV blocks not pinned that are in use, on the replica where it is greatest."""


class PoolView(Protocol):
    """A pool, as it is when a request arrives."""

    @property
    def name(self) -> str:
        """What the scenario calls it."""

    @property
    def replicas(self) -> int:
        """How many replicas it has."""

    @property
    def waiting_requests(self) -> int:
        """Requests in the queues of its replicas."""
