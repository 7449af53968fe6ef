"""One request on its way through the service."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.horizon import FOREVER
from simcore.core.clock import NS_PER_S
from simcore.core.content import BlockKeys, Content
from simcore.core.decode_pool import DecodePool

UNSET = -1
"""A time that has not come yet."""


@dataclass(slots=True, eq=False)
class Request:
    """What the service knows of a request; its true output length is known to the executor alone.

    While the request decodes, its progress is held by its replica's decode pool, all members at once, and
    ``generated_tokens`` asks there; ``origin`` is its place in that pool.
    ``computed_tokens`` counts tokens whose keys and values are in memory, kept while it is not decoding;
    ``cached_tokens`` of the prompt were in memory already when it was first scheduled;
    ``first_token_due_ns`` and ``due_ns`` are when its client gives up if it then has no token, or not the last.
    ``session`` numbers the session that it is part of, ``UNSET`` without one; one that ``ignores_eos`` is sure to
    generate as many tokens as it may;
    ``unknown_tokens`` of its last ones are still to be told to a scheduler that plans ahead of results.
    ``ticket`` marks its place in a queue, ``UNSET`` while it is in none.
    ``lost_token_ns`` is when a preempted request got its last token, until it gets the next. ``content`` is None where
    nothing is known of it. ``done`` is told when the request has ended, True if it is complete.
    """

    number: int
    arrival_ns: int
    prompt_tokens: int
    max_output_tokens: int = 0
    tenant: str = ""
    priority: int = 0
    content: Content | None = None
    done: Callable[[bool], object] | None = None
    first_token_due_ns: int = FOREVER
    due_ns: int = FOREVER
    session: int = UNSET
    ignores_eos: bool = False
    computed_tokens: int = 0
    known_output_tokens: int = 0
    pool: DecodePool | None = None
    origin: int = 0
    admission: int = 0
    unknown_tokens: int = 0
    ticket: int = UNSET
    preemptions: int = 0
    cached_tokens: int = 0
    first_scheduled_ns: int = UNSET
    first_token_ns: int = UNSET
    lost_token_ns: int = UNSET

    @property
    def arrival_s(self) -> float:
        """Seconds from the start of the run to its arrival."""
        return self.arrival_ns / NS_PER_S

    @property
    def generated_tokens(self) -> int:
        """Output tokens so far."""
        if self.pool is None:
            return self.known_output_tokens
        return self.pool.context_of(self.origin) - self.prompt_tokens + 1

    @property
    def tokens_in_memory(self) -> int:
        """Tokens whose keys and values are in memory."""
        return self.computed_tokens if self.pool is None else self.pool.context_of(self.origin)

    @property
    def tokens_to_compute(self) -> int:
        """Tokens of the prompt, and of the output so far, that a prefill must put in memory before decoding."""
        return self.prompt_tokens + self.known_output_tokens - self.computed_tokens


class ReadOnlyRequest:
    """A request as policies see it (``policies.views.RequestView``): to be read, and without its memory or its end."""

    __slots__ = ("_request",)

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def number(self) -> int:
        """Its place in the order of arrival, or in a workload of sessions its place there."""
        return self._request.number

    @property
    def arrival_s(self) -> float:
        """Seconds from the start of the run to its arrival."""
        return self._request.arrival_ns / NS_PER_S

    @property
    def prompt_tokens(self) -> int:
        """Length of its prompt."""
        return self._request.prompt_tokens

    @property
    def max_output_tokens(self) -> int:
        """The most output tokens that it may generate."""
        return self._request.max_output_tokens

    @property
    def tenant(self) -> str:
        """Whose request it is."""
        return self._request.tenant

    @property
    def priority(self) -> int:
        """Its level: 0 is the most urgent."""
        return self._request.priority

    @property
    def session(self) -> int | None:
        """The number of its session, None without one."""
        session = self._request.session
        return None if session == UNSET else session

    def prefix_keys(self, block_tokens: int) -> Sequence[int]:
        """A key for each full block of its prompt, none where its content is not known."""
        content = self._request.content
        if content is None:
            return ()
        return list(BlockKeys(content.prompt, block_tokens).between(0, self._request.prompt_tokens // block_tokens))

    @property
    def generated_tokens(self) -> int:
        """Output tokens so far."""
        return self._request.generated_tokens

    @property
    def tokens_in_memory(self) -> int:
        """Tokens whose keys and values are in memory."""
        return self._request.tokens_in_memory

    @property
    def preemptions(self) -> int:
        """How often it lost its KV memory so far."""
        return self._request.preemptions


def request_behind(view: ReadOnlyRequest) -> Request:
    """The request that a policy was shown and hands back."""
    return view._request
