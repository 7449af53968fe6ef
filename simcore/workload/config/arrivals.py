"""When requests arrive, as a user writes it."""

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from simcore.workload.config.section import Count, LongerThanZero, RatePerS, Seconds, Section

RateOrNone = Annotated[float, Field(ge=0, le=1e9)]


class PoissonArrivals(Section):
    """Independent requests at a constant mean rate."""

    name: Literal["poisson"]
    rate_per_s: RatePerS
    """Requests per second. The gaps between them are exponential."""


class GammaArrivals(Section):
    """Gamma-distributed gaps; ``cv`` (standard deviation over mean) above 1 is bursty, below 1 regular."""

    name: Literal["gamma"]
    rate_per_s: RatePerS
    """Requests per second."""
    cv: Annotated[float, Field(ge=0.01, le=100)]
    """Standard deviation of the gaps over their mean. 1 is Poisson, more is bursty, less is regular."""


class ConstantArrivals(Section):
    """Equal gaps."""

    name: Literal["constant"]
    rate_per_s: RatePerS
    """Requests per second."""


class OnOffArrivals(Section):
    """A Poisson process whose rate alternates between phases of fixed length, beginning with an on-phase."""

    name: Literal["on-off"]
    on_rate_per_s: RatePerS
    """Requests per second of an on-phase."""
    off_rate_per_s: Annotated[float, Field(ge=0)] = 0.0
    """Requests per second of an off-phase."""
    on_s: LongerThanZero
    """Length of an on-phase, seconds."""
    off_s: LongerThanZero
    """Length of an off-phase, seconds."""


class AtOnceArrivals(Section):
    """All requests at time 0."""

    name: Literal["at-once"]


class RateFrom(Section):
    """A rate, and the time from which it holds."""

    from_s: Seconds
    """When the rate begins to hold, seconds. The first is 0."""
    rate_per_s: RateOrNone
    """Requests per second."""


class PiecewiseArrivals(Section):
    """A Poisson process with a rate for each stretch of time; the last one lasts, or all repeat after ``period_s``."""

    name: Literal["piecewise"]
    rates: Annotated[list[RateFrom], Field(min_length=1, max_length=100_000)]
    """Rates with their beginnings. Each holds until the next; the last one lasts."""
    period_s: LongerThanZero | None = None
    """Time after which all rates begin again, seconds."""

    @field_validator("rates")
    @classmethod
    def _in_order(cls, rates: list[RateFrom]) -> list[RateFrom]:
        starts = [rate.from_s for rate in rates]
        if starts[0] != 0 or any(later <= earlier for earlier, later in pairwise(starts)):
            raise ValueError("from_s that begin with 0 and rise")
        return rates

    @model_validator(mode="after")
    def _somebody_arrives(self) -> Self:
        if self.period_s is None and not self.rates[-1].rate_per_s:
            raise ValueError("a last rate_per_s above 0, or period_s, after which rates repeat")
        if self.period_s is not None and self.period_s <= self.rates[-1].from_s:
            raise ValueError(f"a period_s above the last from_s, {self.rates[-1].from_s:g}")
        if not any(rate.rate_per_s for rate in self.rates):
            raise ValueError("some rate_per_s above 0")
        return self


class DailyArrivals(Section):
    """A Poisson process with a rate for each hour of a day, of which the first is that of ``start_hour``.

    A day lasts ``day_s``, so that one can be replayed in less.
    """

    name: Literal["daily"]
    rates_per_s: Annotated[list[RateOrNone], Field(min_length=24, max_length=24)]
    """24 rates, one for each hour of a day."""
    start_hour: Annotated[int, Field(ge=0, le=23)] = 0
    """The hour at which the run begins."""
    day_s: LongerThanZero = 86_400.0
    """Length of a day, seconds. Less replays it faster, at the same rates."""

    @field_validator("rates_per_s")
    @classmethod
    def _somebody_arrives(cls, rates: list[float]) -> list[float]:
        if not any(rates):
            raise ValueError("some rate above 0")
        return rates


class ClosedLoopArrivals(Section):
    """``concurrency`` clients, each waiting for its answer and ``think_time_s`` more before it sends again."""

    name: Literal["closed-loop"]
    concurrency: Count
    """Clients. Each waits for its answer before it sends again."""
    think_time_s: Seconds = 0.0
    """Time that a client waits beyond that, seconds."""


Arrivals = Annotated[
    PoissonArrivals
    | GammaArrivals
    | ConstantArrivals
    | OnOffArrivals
    | AtOnceArrivals
    | PiecewiseArrivals
    | DailyArrivals
    | ClosedLoopArrivals,
    Field(discriminator="name"),
]
