"""Recordings of vLLM's V1 scheduler, synchronous and asynchronous.

``config`` has block_size, num_blocks, max_num_batched_tokens, max_num_seqs, policy, prefix_caching,
long_prefill_token_threshold, reserve_full_isl; ``requests`` have id, arrive_step, prompt as ranges of tokens, output
and priority; ``steps`` have scheduled in order, cached_tokens, preempted (a set), finished and free_blocks_after.
``engine.async_scheduling`` says whether a step is planned before the result of the one before it is known.

One step is one call of the scheduler, the first is step 0. A fake model samples one token whenever a step completes
all known tokens of a request: one that nobody else has, or with ``engine.sampled_tokens`` "one" always token 1. No
output ends early, but where a request reaches ``max_model_len``, if that is stated.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fidelity.recordings.form import MOST, BlockTokens, Count, Part, Positive, RecordedRequest, check_ids
from simcore.core.errors import InputError, Phrase


class Engine(Part):
    """Which engine was recorded; what only says so is free."""

    name: Literal["vllm"] = "vllm"
    version: Any = None
    component: Literal["v1 scheduler"] = "v1 scheduler"
    async_scheduling: bool = False
    batch_queue: Literal[2] = 2
    sampled_tokens: Literal["own", "one"] = "own"
    cut_after: Count | None = None


class Config(Part):
    """The engine's settings."""

    block_size: BlockTokens
    num_blocks: Annotated[int, Field(ge=2, le=MOST)]
    max_num_batched_tokens: Positive
    max_num_seqs: Positive
    max_model_len: Positive | None = None
    policy: Literal["fcfs", "priority"] = "fcfs"
    prefix_caching: bool = False
    long_prefill_token_threshold: Count = 0
    reserve_full_isl: bool = True


class VllmRequest(RecordedRequest):
    """A request; one that is given up is so before step ``abort_step`` is planned."""

    abort_step: Count | None = None

    def output_within(self, max_model_len: int | None) -> int:
        """Output tokens, fewer than wished for where the longest context ends them."""
        return self.output if max_model_len is None else min(self.output, max_model_len - self.prompt_tokens)


class Step(Part):
    """The decisions of one step."""

    scheduled: dict[int, int]
    cached_tokens: dict[int, int] = Field(default_factory=dict)
    preempted: list[int]
    finished: list[int]
    free_blocks_after: int


class VllmRecording(Part):
    """A whole run; ``name`` only says which."""

    compared: ClassVar[Sequence[str]] = ("preempted", "scheduled", "cached_tokens", "finished", "free_blocks_after")

    name: Any = None
    engine: Engine = Engine()
    config: Config
    requests: list[VllmRequest]
    steps: Annotated[list[Step], Field(min_length=1)]

    @property
    def kind(self) -> str:
        """Which engine, in which mode."""
        return f"vLLM V1, {'asynchronous' if self.engine.async_scheduling else 'synchronous'}"

    @property
    def recorded_steps(self) -> Sequence[Step]:
        """The steps, with preempted requests as a set: in order of their numbers."""
        return [step.model_copy(update={"preempted": sorted(step.preempted)}) for step in self.steps]

    def check(self, field: str) -> None:
        """Raise ``InputError`` for an id that stands twice, or a prompt that leaves no room for an output."""
        check_ids(self.requests, field)
        longest = self.config.max_model_len
        for number, request in enumerate(self.requests):
            if request.output_within(longest) < 1:
                raise InputError(
                    f"{field}requests.{number}.prompt",
                    Phrase(f"{request.prompt_tokens} tokens long"),
                    f"fewer than max_model_len, {longest}",
                )

    def parts(self) -> Iterator[tuple[str, Part]]:
        """All parts, each with where it stands."""
        yield "", self
        yield "engine.", self.engine
        yield "config.", self.config
        for number, request in enumerate(self.requests):
            yield f"requests.{number}.", request
        for number, step in enumerate(self.steps):
            yield f"steps.{number}.", step
