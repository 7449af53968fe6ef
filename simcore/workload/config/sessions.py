"""Requests that follow each other, as a user writes it."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from simcore.workload.config.durations import Duration, FixedTime
from simcore.workload.config.lengths import Length, longest
from simcore.workload.config.section import Section

MOST_REQUESTS = 10_000
"""The most requests of one session."""


class ChatSession(Section):
    """``turns`` requests, each sent ``think_time_s`` after the answer to the one before and going on from it."""

    name: Literal["chat"]
    turns: Length
    """Distribution of the number of turns, at most 10,000."""
    think_time_s: Duration
    """Distribution of the time from an answer to the next turn."""

    @field_validator("turns")
    @classmethod
    def _not_endless(cls, turns: Length) -> Length:
        if longest(turns) > MOST_REQUESTS:
            raise ValueError(f"at most {MOST_REQUESTS} turns, not {longest(turns)}")
        return turns


class AgentsSession(Section):
    """A request whose answer calls ``fan_out`` others, and theirs as many, down to ``depth`` levels below it.

    With ``join`` every one that called others is taken up again when all of them are done.
    """

    name: Literal["agents"]
    fan_out: Length
    """Distribution of the number of requests that one sends."""
    depth: Annotated[int, Field(ge=1, le=32)] = 1
    """Levels below the first request. A tree has at most 10,000 requests."""
    join: bool = False
    """Whether a request that sent others goes on when all of theirs have ended."""
    think_time_s: Duration = FixedTime(name="fixed", time_s=0.0)
    """Distribution of the time before a request is sent, such as that of a tool."""

    @property
    def most_requests(self) -> int:
        """The requests of the largest tree, joins included."""
        fan_out = longest(self.fan_out)
        level = inner = 1
        for _ in range(self.depth - 1):
            level *= fan_out
            inner += level
        return inner + level * fan_out + (inner if self.join else 0)

    @model_validator(mode="after")
    def _not_endless(self) -> Self:
        if self.most_requests > MOST_REQUESTS:
            raise ValueError(f"trees of at most {MOST_REQUESTS} requests, not {self.most_requests}")
        return self


SessionConfig = Annotated[ChatSession | AgentsSession, Field(discriminator="name")]
