"""The ``workload:`` section of a scenario, as a user writes it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from simcore.errors import nearest_name
from simcore.workload.lengths import MAX_TOKENS

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
RatePerS = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0, le=9e9)]
LongerThanZero = Annotated[float, Field(gt=0, le=9e9)]
RankCorrelation = Annotated[float, Field(ge=-1, le=1)]


class _Section(BaseModel):
    """Strict: no unknown keys, no text or booleans for numbers, no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class PoissonArrivals(_Section):
    """Independent requests at a constant mean rate."""

    name: Literal["poisson"]
    rate_per_s: RatePerS


class GammaArrivals(_Section):
    """Gamma-distributed gaps; ``cv`` (standard deviation over mean) above 1 is bursty, below 1 regular."""

    name: Literal["gamma"]
    rate_per_s: RatePerS
    cv: Annotated[float, Field(ge=0.01, le=100)]


class ConstantArrivals(_Section):
    """Equal gaps."""

    name: Literal["constant"]
    rate_per_s: RatePerS


class OnOffArrivals(_Section):
    """A Poisson process whose rate alternates between phases of fixed length, beginning with an on-phase."""

    name: Literal["on-off"]
    on_rate_per_s: RatePerS
    off_rate_per_s: Annotated[float, Field(ge=0)] = 0.0
    on_s: LongerThanZero
    off_s: LongerThanZero


class ClosedLoopArrivals(_Section):
    """``concurrency`` clients, each waiting for its answer and ``think_time_s`` more before it sends again."""

    name: Literal["closed-loop"]
    concurrency: Count
    think_time_s: Seconds = 0.0


Arrivals = Annotated[
    PoissonArrivals | GammaArrivals | ConstantArrivals | OnOffArrivals | ClosedLoopArrivals, Field(discriminator="name")
]


class FixedLength(_Section):
    """Every length is ``tokens``."""

    name: Literal["fixed"]
    tokens: Tokens


class UniformLength(_Section):
    """Whole numbers from ``low`` to ``high``, both included."""

    name: Literal["uniform"]
    low: Tokens
    high: Tokens

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low no greater than high, not {self.low} and {self.high}")
        return self


class LognormalLength(_Section):
    """Lognormal with ``median`` and ``sigma`` (standard deviation of the natural logarithm).

    Conditioned on ``min`` to ``max``, as if every length outside were drawn again; the median lies between them.
    """

    name: Literal["lognormal"]
    median: Annotated[float, Field(ge=1, le=MAX_TOKENS)]
    sigma: Annotated[float, Field(gt=0, le=10)]
    min: Tokens = 1
    max: Tokens = MAX_TOKENS

    @model_validator(mode="after")
    def _median_within_bounds(self) -> Self:
        if not self.min <= self.median <= self.max:
            raise ValueError(f"min <= median <= max, not {self.min}, {self.median:g} and {self.max}")
        return self


class QuantilesLength(_Section):
    """A distribution through stated quantiles: ``tokens: {min: 7, p50: 129, p99: 601, max: 1000}``."""

    name: Literal["quantiles"]
    tokens: dict[str, Tokens]

    @field_validator("tokens")
    @classmethod
    def _rising(cls, tokens: dict[str, int]) -> dict[str, int]:
        if not {"min", "max"} <= tokens.keys():
            raise ValueError("min and max among the quantiles")
        for key in tokens:
            if key not in ("min", "max") and not re.fullmatch(r"p\d{1,2}(\.\d+)?", key):
                raise ValueError(f"quantiles named min, p50, p99.9, max and so on, not {key!r}")
        rising = dict(sorted(tokens.items(), key=lambda item: quantile_share(item[0])))
        shares = [quantile_share(key) for key in rising]
        if len(set(shares)) < len(shares):
            raise ValueError("each quantile once")
        if list(rising.values()) != sorted(rising.values()):
            raise ValueError("lengths that do not fall from min to max")
        return rising


def quantile_share(key: str) -> float:
    """The share that a quantile's name stands for: "min" 0, "p99.9" 0.999, "max" 1."""
    ends = {"min": 0.0, "max": 1.0}
    return ends[key] if key in ends else float(key[1:]) / 100


Length = Annotated[FixedLength | UniformLength | LognormalLength | QuantilesLength, Field(discriminator="name")]


class TraceColumns(_Section):
    """Which columns (or JSON keys) of a file hold what, and the unit of arrival times."""

    arrival: Text = "arrival_s"
    arrival_unit: Literal["s", "ms", "us", "ns", "timestamp"] = "s"
    prompt_tokens: Text = "prompt_tokens"
    output_tokens: Text = "output_tokens"


FormatName = Literal["auto", "azure2023", "mooncake", "burstgpt", "vidur", "csv", "jsonl", "parquet"]


class EmpiricalLengths(_Section):
    """Pairs drawn with replacement from a file; its arrival times, if any, are not used."""

    name: Literal["empirical"]
    file: Text
    format: FormatName = "auto"
    columns: TraceColumns | None = None
    skip_failed: bool = False


class CorrelatedLengths(_Section):
    """Prompt and output lengths tied by a Gaussian copula of the given Spearman rank correlation."""

    name: Literal["correlated"]
    prompt_tokens: Length
    output_tokens: Length
    rank_correlation: RankCorrelation


LengthPair = Annotated[EmpiricalLengths | CorrelatedLengths, Field(discriminator="name")]


class SyntheticWorkload(_Section):
    """Random requests.

    Either ``requests`` or ``duration_s`` bounds them, and lengths come either from ``prompt_tokens`` and
    ``output_tokens`` or, where the two belong together, from ``lengths``.
    """

    requests: Count | None = None
    duration_s: LongerThanZero | None = None
    arrivals: Arrivals
    prompt_tokens: Length | None = None
    output_tokens: Length | None = None
    lengths: LengthPair | None = None

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


class TraceWorkload(_Section):
    """Recorded requests.

    ``window_s`` keeps those from its start to just before its end, counted from the trace's first request and before
    scaling; arrivals then count from the start of the window. ``rate_scale`` 2 makes them twice as fast. ``requests``
    keeps at most that many. ``sort`` allows a file that is not in order of arrival; ``skip_failed`` leaves out requests
    without any output token.
    """

    trace: Text
    format: FormatName = "auto"
    columns: TraceColumns | None = None
    rate_scale: RatePerS = 1.0
    window_s: Annotated[tuple[Seconds, Seconds], Field(strict=False)] | None = None
    requests: Count | None = None
    sort: bool = False
    skip_failed: bool = False

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


def _kind(section: Any) -> str | None:
    """Which of the two a mapping is meant to be, also when a key is misspelt."""
    if isinstance(section, TraceWorkload):
        return "trace"
    if isinstance(section, SyntheticWorkload):
        return "synthetic"
    if not isinstance(section, Mapping):
        return None
    if "trace" in section:
        return "trace"
    synthetic, recorded = SyntheticWorkload.model_fields.keys(), TraceWorkload.model_fields.keys()
    meant = {nearest_name(str(key), synthetic | recorded) for key in section}
    return "trace" if len(meant & recorded) > len(meant & synthetic) else "synthetic"


WorkloadConfig = Annotated[
    Annotated[SyntheticWorkload, Tag("synthetic")] | Annotated[TraceWorkload, Tag("trace")],
    Discriminator(
        _kind,
        custom_error_type="no_workload",
        custom_error_message="a mapping with trace, or with arrivals, lengths and a number of requests",
    ),
]
"""A synthetic workload, or a trace where the key ``trace`` is present."""
