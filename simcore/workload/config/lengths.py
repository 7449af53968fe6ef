"""How long prompts and outputs are, as a user writes it."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from simcore.workload.config.columns import FormatName, LengthColumns
from simcore.workload.config.section import Section, Text, Tokens
from simcore.workload.lengths import MAX_TOKENS


class FixedLength(Section):
    """Every length is ``tokens``."""

    name: Literal["fixed"]
    tokens: Tokens
    """Every length."""


class UniformLength(Section):
    """Whole numbers from ``low`` to ``high``, both included."""

    name: Literal["uniform"]
    low: Tokens
    """Shortest length."""
    high: Tokens
    """Longest length."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low no greater than high, not {self.low} and {self.high}")
        return self


class LognormalLength(Section):
    """Lognormal with ``median`` and ``sigma`` (standard deviation of the natural logarithm).

    Conditioned on ``min`` to ``max``, as if every length outside were drawn again; the median lies between them.
    """

    name: Literal["lognormal"]
    median: Annotated[float, Field(ge=1, le=MAX_TOKENS)]
    """Median before the bounds."""
    sigma: Annotated[float, Field(gt=0, le=10)]
    """Standard deviation of the natural logarithm."""
    min: Tokens = 1
    """Shortest length. A length outside the bounds is drawn again, not clipped."""
    max: Tokens = MAX_TOKENS
    """Longest length."""

    @model_validator(mode="after")
    def _median_within_bounds(self) -> Self:
        if not self.min <= self.median <= self.max:
            raise ValueError(f"min <= median <= max, not {self.min}, {self.median:g} and {self.max}")
        return self


class QuantilesLength(Section):
    """A distribution through stated quantiles: ``tokens: {min: 7, p50: 129, p99: 601, max: 1000}``."""

    name: Literal["quantiles"]
    tokens: dict[str, Tokens]
    """Lengths at quantiles, ``min`` and ``max`` among them: ``{min: 7, p50: 129, p99: 601, max: 1000}``."""

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


def longest(length: Length) -> int:
    """The greatest length that a distribution has."""
    match length:
        case FixedLength():
            return length.tokens
        case UniformLength():
            return length.high
        case LognormalLength():
            return length.max
        case QuantilesLength():
            return length.tokens["max"]


class EmpiricalLengths(Section):
    """Pairs from a file, whose arrival times, if any, are not used: drawn with replacement, or in the file's order.

    In order they begin again when the file ends.
    """

    name: Literal["empirical"]
    file: Text
    """Path of a trace with pairs of lengths."""
    format: FormatName = "auto"
    """Its format, as for a trace."""
    columns: LengthColumns | None = None
    """Its columns, as for a trace, but none of senders."""
    skip_failed: bool = False
    """Whether to leave out requests without an output token."""
    order: Literal["random", "file"] = "random"
    """``random``: pairs are drawn with replacement. ``file``: they come as in the file, again and again."""


class ListedLengths(Section):
    """Prompt and output lengths one after another, from the beginning again when the list ends."""

    name: Literal["list"]
    tokens: Annotated[list[Annotated[list[Tokens], Field(min_length=2, max_length=2)]], Field(min_length=1)]
    """Pairs of prompt and output lengths, used in order, again and again: ``[[900, 120], [40, 300]]``."""


class CorrelatedLengths(Section):
    """Prompt and output lengths tied by a Gaussian copula of the given Spearman rank correlation."""

    name: Literal["correlated"]
    prompt_tokens: Length
    """Distribution of prompt lengths."""
    output_tokens: Length
    """Distribution of output lengths."""
    rank_correlation: Annotated[float, Field(ge=-1, le=1)]
    """Spearman's rank correlation of the two, -1 to 1."""


LengthPair = Annotated[EmpiricalLengths | ListedLengths | CorrelatedLengths, Field(discriminator="name")]
