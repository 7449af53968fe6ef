"""Recordings of SGLang's scheduler.

``config`` has SGLang's own names; ``requests`` have id, arrive_step, prompt, output, max_tokens (at least output),
ignore_eos and priority; ``ratio`` is the new-token ratio's start, floor and step. A step is one pass of the event loop;
empty lists, false and null are left out of it. The last token of an output stops it.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fidelity.recordings.form import BlockTokens, Count, Part, Positive, RecordedRequest, check_ids
from simcore.core.errors import InputError, Phrase

Numbers = list[int]


class Engine(Part):
    """Which engine was recorded; what only says so is free."""

    name: Literal["sglang"]
    version: Any = None
    component: Literal["scheduler"] = "scheduler"
    torch: Any = None
    tree: Any = None


class Config(Part):
    """The engine's settings, by its own names."""

    schedule_policy: Literal["fcfs", "lpm", "dfs-weight", "lof"]
    page_size: BlockTokens
    max_total_tokens: Positive
    max_running_requests: Positive
    chunked_prefill_size: Annotated[int, Field(ge=-1)]
    max_prefill_tokens: Positive
    context_len: Positive | None = None
    schedule_conservativeness: Annotated[float, Field(gt=0)] = 1.0
    enable_mixed_chunk: bool = False
    disable_radix_cache: bool = False
    overlap: bool
    enable_priority_scheduling: bool = False
    schedule_low_priority_values_first: bool = False
    priority_scheduling_preemption_threshold: int = 10
    disable_priority_preemption: bool = False
    retraction_policy: Literal["length", "priority"] = "length"


class Ratio(Part):
    """The new-token ratio of a run."""

    init: float
    min: float
    decay: float


class SglangRequest(RecordedRequest):
    """A request; the scheduler is told ``max_tokens``, and ``ignore_eos`` that all of them will come."""

    max_tokens: Positive
    ignore_eos: bool = False


class Step(Part):
    """The decisions of one pass."""

    mode: Literal["extend", "decode", "mixed"] | None = None
    reqs: Numbers = Field(default_factory=list)
    new: Numbers = Field(default_factory=list)
    prefix: Numbers = Field(default_factory=list)
    admitted: Numbers = Field(default_factory=list)
    chunked: int | None = None
    waiting: Numbers = Field(default_factory=list)
    retracted: Numbers = Field(default_factory=list)
    preempted: Numbers = Field(default_factory=list)
    finished: Numbers = Field(default_factory=list)
    free: Count
    evictable: Count
    evicted: Count = 0
    full: bool = False
    ratio: float


class SglangRecording(Part):
    """A whole run; ``name`` only says which."""

    compared: ClassVar[Sequence[str]] = tuple(name for name in Step.model_fields)

    name: Any = None
    engine: Engine
    config: Config
    ratio: Ratio
    requests: list[SglangRequest]
    steps: Annotated[list[Step], Field(min_length=1)]

    @property
    def kind(self) -> str:
        """Which engine, in which mode."""
        return f"SGLang, {'with' if self.config.overlap else 'without'} overlap"

    @property
    def recorded_steps(self) -> Sequence[Step]:
        """The steps, with ratios to nine digits."""
        return [step.model_copy(update={"ratio": round(step.ratio, 9)}) for step in self.steps]

    def check(self, field: str) -> None:
        """Raise ``InputError`` for an id that stands twice, or an output beyond its limit."""
        check_ids(self.requests, field)
        for number, request in enumerate(self.requests):
            if request.output > request.max_tokens:
                raise InputError(
                    f"{field}requests.{number}.output",
                    Phrase(f"{request.output} tokens long"),
                    f"at most max_tokens, {request.max_tokens}",
                )

    def parts(self) -> Iterator[tuple[str, Part]]:
        """All parts, each with where it stands."""
        yield "", self
        yield "engine.", self.engine
        yield "config.", self.config
        yield "ratio.", self.ratio
        for number, request in enumerate(self.requests):
            yield f"requests.{number}.", request
        for number, step in enumerate(self.steps):
            yield f"steps.{number}.", step
