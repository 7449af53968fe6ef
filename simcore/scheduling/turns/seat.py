"""A request on its way through prefill and decode in turns."""

from dataclasses import dataclass

from simcore.core.request import Request
from simcore.memory.page_memory import PageHolding


@dataclass(slots=True, eq=False)
class Seat:
    """A request and what the scheduler knows of it.

    ``generated_tokens`` are those of which the results are known. ``known_tokens`` are prompt and output as they were
    when it was last considered, ``prefix_tokens`` of them were found or computed then, and ``end_tokens`` is where the
    step planned last ends. ``queued_at`` orders it by when it entered the queue.
    """

    request: Request
    holding: PageHolding
    ignores_eos: bool = False
    generated_tokens: int = 0
    known_tokens: int = 0
    prefix_tokens: int = 0
    matched_tokens: int = 0
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
    def max_output_tokens(self) -> int:
        """The request's."""
        return self.request.max_output_tokens

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
    def tokens_in_memory(self) -> int:
        """Tokens that memory holds of it."""
        return self.holding.committed_tokens

    @property
    def text_tokens(self) -> int:
        """Prompt and output so far."""
        return self.request.prompt_tokens + self.generated_tokens

    @property
    def remaining_tokens(self) -> int:
        """The most that it may still generate."""
        return self.request.max_output_tokens - self.generated_tokens

    @property
    def ends_by_length(self) -> bool:
        """Whether the next token is sure to be its last."""
        return self.generated_tokens + 1 >= self.request.max_output_tokens

    def consider(self) -> None:
        """Take note of its text as it is now."""
        self.known_tokens = self.text_tokens
