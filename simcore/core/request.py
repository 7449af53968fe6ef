"""One request on its way through the service."""

from dataclasses import dataclass

from simpy import Event

from policies.horizon import FOREVER
from simcore.core.clock import NS_PER_S
from simcore.core.content import Content
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
    ``unknown_tokens`` of its last ones are still to be told to a scheduler that plans ahead of results.
    ``ticket`` marks its place in a queue, ``UNSET`` while it is in none.
    ``lost_token_ns`` is when a preempted request got its last token, until it gets the next. ``content`` is None where
    nothing is known of it. ``done`` comes when the request has ended, with False if it was turned away.
    """

    number: int
    arrival_ns: int
    prompt_tokens: int
    max_output_tokens: int = 0
    tenant: str = ""
    priority: int = 0
    content: Content | None = None
    done: Event | None = None
    first_token_due_ns: int = FOREVER
    due_ns: int = FOREVER
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
