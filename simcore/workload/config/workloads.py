"""The ``workload:`` section of a scenario, as a user writes it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from simcore.core.errors import nearest_name
from simcore.workload.config.arrivals import Arrivals, ClosedLoopArrivals
from simcore.workload.config.columns import FormatName, TraceColumns
from simcore.workload.config.lengths import Length, LengthPair
from simcore.workload.config.prompts import PromptPart
from simcore.workload.config.section import Count, LongerThanZero, RatePerS, Seconds, Section, Text, Tokens
from simcore.workload.config.senders import SenderSection
from simcore.workload.config.sessions import SessionConfig

Samples = Annotated[int, Field(ge=1, le=1000)]


class SyntheticWorkload(SenderSection):
    """Random requests."""

    requests: Count | None = None
    """Number of requests. The last session is cut short."""
    duration_s: LongerThanZero | None = None
    """Time in which requests, or sessions, arrive, seconds. At least one must."""
    arrivals: Arrivals
    """When requests, or sessions, arrive."""
    prompt_tokens: Length | None = None
    """Distribution of prompt lengths."""
    output_tokens: Length | None = None
    """Distribution of output lengths."""
    lengths: LengthPair | None = None
    """Prompt and output lengths drawn together."""
    prefix: list[PromptPart] | None = None
    """Parts before a prompt's own tokens. They make it longer. ``[]``: nothing is shared."""
    session: SessionConfig | None = None
    """What follows a request that has ended."""
    samples: Samples = 1
    """Outputs that each request asks for (``n`` of an API), with lengths drawn alike."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.requests is None) == (self.duration_s is None):
            raise ValueError("exactly one of requests and duration_s")
        if isinstance(self.arrivals, ClosedLoopArrivals) and self.requests is None:
            raise ValueError("requests, not duration_s, for closed-loop arrivals")
        alone = (self.prompt_tokens is not None, self.output_tokens is not None)
        if alone not in ((True, True), (False, False)) or any(alone) == (self.lengths is not None):
            raise ValueError("either prompt_tokens and output_tokens, or lengths")
        return self

    @field_validator("samples")
    @classmethod
    def _samples_arrive_together(cls, samples: int, info: ValidationInfo) -> int:
        answered = isinstance(info.data.get("arrivals"), ClosedLoopArrivals)
        if samples > 1 and (answered or info.data.get("session") or info.data.get("lengths")):
            raise ValueError("1 with a closed loop, sessions, or lengths that belong together")
        return samples


class TraceWorkload(SenderSection):
    """Recorded requests.

    ``window_s`` keeps those from its start to just before its end. Arrivals then count from the start of the window.
    """

    trace: Text
    """Path of a CSV, JSONL or JSON file (each may be .gz) or a Parquet file."""
    format: FormatName = "auto"
    """One of the formats below. ``auto``: told from the columns."""
    columns: TraceColumns | None = None
    """Names of the columns of a CSV, JSONL or Parquet file of one's own."""
    rate_scale: RatePerS = 1.0
    """Requests arrive so many times as fast as recorded."""
    window_s: Annotated[tuple[Seconds, Seconds], Field(strict=False)] | None = None
    """``[start, end]``: only requests recorded between, seconds since the first and before scaling."""
    requests: Count | None = None
    """Most requests."""
    sort: bool = False
    """Whether a file may be out of order."""
    skip_failed: bool = False
    """Whether to leave out requests without an output token."""
    block_tokens: Tokens | None = None
    """Tokens that each hash id stands for. By default what the format says."""
    turns: Literal["recorded", "closed-loop"] = "recorded"
    """When turns of recorded chats arrive: as ``recorded``, or not before the answer to the turn before."""
    resample: bool = False
    """Whether the seed draws blocks of recorded time, or of whole chats, anew. ``compare --seeds N`` does."""

    @field_validator("window_s", mode="before")
    @classmethod
    def _window_has_two_ends(cls, window_s: Any) -> Any:
        if window_s is not None and not (isinstance(window_s, list | tuple) and len(window_s) == 2):
            raise ValueError("two times in seconds, [start, end]")
        return window_s

    @field_validator("window_s")
    @classmethod
    def _window_holds_time(cls, window_s: tuple[float, float] | None) -> tuple[float, float] | None:
        if window_s is not None and window_s[0] >= window_s[1]:
            raise ValueError("a start before its end")
        return window_s

    @model_validator(mode="after")
    def _sender_said_once(self) -> Self:
        columns = self.columns or TraceColumns()
        for name, stated in (
            ("tenant", self.tenant or self.tenants),
            ("priority", self.priority or self.tenants),
            ("max_output_tokens", self.max_output_tokens or self.tenants),
        ):
            if getattr(columns, name) is not None and stated:
                raise ValueError(f"{name} either from a column or stated here, not both")
        return self


def _kind_among(kinds: Mapping[str, type[Section]]) -> Callable[[Any], str | None]:
    """Which of ``kinds``, by their key of that name, a mapping is meant to be, also when a key is misspelt."""
    fields = {kind: section.model_fields.keys() for kind, section in kinds.items()}

    def kind_of(section: Any) -> str | None:
        for kind, model in kinds.items():
            if isinstance(section, model):
                return kind
        if not isinstance(section, Mapping):
            return None
        for kind in kinds:
            if kind in section:
                return kind
        known = set().union(*fields.values())
        meant = {nearest_name(str(key), known) for key in section}
        return max(kinds, key=lambda kind: len(meant & fields[kind]))

    return kind_of


_WORDS = "a mapping with trace, or with arrivals, lengths and a number of requests"
_ONE_STREAM: dict[str, type[Section]] = {"synthetic": SyntheticWorkload, "trace": TraceWorkload}

Stream = Annotated[
    Annotated[SyntheticWorkload, Tag("synthetic")] | Annotated[TraceWorkload, Tag("trace")],
    Discriminator(
        _kind_among(_ONE_STREAM),
        custom_error_type="no_workload",
        custom_error_message=_WORDS,
    ),
]
"""A synthetic workload, or a trace where the key ``trace`` is present."""


class StreamsWorkload(Section):
    """Requests of several workloads, each with its own senders, in order of arrival."""

    streams: list[Stream]
    """Workloads, random ones and traces. None has arrivals in a closed loop."""

    @field_validator("streams")
    @classmethod
    def _at_least_one(cls, streams: list[Stream]) -> list[Stream]:
        if not streams:
            raise ValueError("at least one stream")
        return streams

    @property
    def gives_up(self) -> bool:
        """Whether some client may give up."""
        return any(stream.gives_up for stream in self.streams)


WorkloadConfig = Annotated[
    Annotated[SyntheticWorkload, Tag("synthetic")]
    | Annotated[TraceWorkload, Tag("trace")]
    | Annotated[StreamsWorkload, Tag("streams")],
    Discriminator(
        _kind_among(_ONE_STREAM | {"streams": StreamsWorkload}),
        custom_error_type="no_workload",
        custom_error_message=f"{_WORDS}, or with streams",
    ),
]
"""One stream, or several under the key ``streams``."""
