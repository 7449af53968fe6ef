"""A request on its way through prefill and decode in turns."""

from dataclasses import dataclass

from simcore.core.request import Request


@dataclass(slots=True, eq=False)
class Seat:
    """A request and what a scheduler of turns knows of it; policies see it as a request.

    ``lag_tokens`` of its output are there, but their results are not known yet; ``surplus_tokens`` it was given after
    its last. ``known_tokens`` are prompt and output as they were when it was last considered, ``prefix_tokens`` of them
    were found or computed then, and ``end_tokens`` is where the step of prompts ends that was planned last.
    """

    request: Request
    max_output_tokens: int
    lag_tokens: int = 0
    surplus_tokens: int = 0
    key: tuple[float, ...] = ()
    known_tokens: int = 0
    prefix_tokens: int = 0
    end_tokens: int = 0
    queued_at: int = 0
    holds_row: bool = False
    finished: bool = False
    retracted: bool = False

    @property
    def number(self) -> int:
        """The request's."""
        return self.request.number

    @property
    def arrival_s(self) -> float:
        """The request's."""
        return self.request.arrival_s

    @property
    def prompt_tokens(self) -> int:
        """The request's."""
        return self.request.prompt_tokens

    @property
    def tenant(self) -> str:
        """The request's."""
        return self.request.tenant

    @property
    def priority(self) -> int:
        """The request's: the smaller, the more urgent."""
        return self.request.priority

    @property
    def preemptions(self) -> int:
        """The request's."""
        return self.request.preemptions

    @property
    def ignores_eos(self) -> bool:
        """The request's."""
        return self.request.ignores_eos

    @property
    def tokens_in_memory(self) -> int:
        """Tokens that memory holds of it."""
        return self.request.tokens_in_memory + self.surplus_tokens

    @property
    def generated_tokens(self) -> int:
        """Output tokens whose results are known."""
        return self.request.generated_tokens - self.lag_tokens

    @property
    def text_tokens(self) -> int:
        """Prompt and output so far."""
        return self.request.prompt_tokens + self.generated_tokens

    @property
    def remaining_tokens(self) -> int:
        """The most that it may still generate."""
        return self.max_output_tokens - self.request.generated_tokens + self.lag_tokens

    @property
    def ends_by_length(self) -> bool:
        """Whether the next token is sure to be its last."""
        return self.request.generated_tokens - self.lag_tokens + 1 >= self.max_output_tokens

    def consider(self) -> None:
        """Take note of its text as it is now."""
        self.known_tokens = self.text_tokens
