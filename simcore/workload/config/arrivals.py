"""When requests arrive, as a user writes it."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.workload.config.section import Count, LongerThanZero, RatePerS, Seconds, Section


class PoissonArrivals(Section):
    """Independent requests at a constant mean rate."""

    name: Literal["poisson"]
    rate_per_s: RatePerS


class GammaArrivals(Section):
    """Gamma-distributed gaps; ``cv`` (standard deviation over mean) above 1 is bursty, below 1 regular."""

    name: Literal["gamma"]
    rate_per_s: RatePerS
    cv: Annotated[float, Field(ge=0.01, le=100)]


class ConstantArrivals(Section):
    """Equal gaps."""

    name: Literal["constant"]
    rate_per_s: RatePerS


class OnOffArrivals(Section):
    """A Poisson process whose rate alternates between phases of fixed length, beginning with an on-phase."""

    name: Literal["on-off"]
    on_rate_per_s: RatePerS
    off_rate_per_s: Annotated[float, Field(ge=0)] = 0.0
    on_s: LongerThanZero
    off_s: LongerThanZero


class ClosedLoopArrivals(Section):
    """``concurrency`` clients, each waiting for its answer and ``think_time_s`` more before it sends again."""

    name: Literal["closed-loop"]
    concurrency: Count
    think_time_s: Seconds = 0.0


Arrivals = Annotated[
    PoissonArrivals | GammaArrivals | ConstantArrivals | OnOffArrivals | ClosedLoopArrivals, Field(discriminator="name")
]
