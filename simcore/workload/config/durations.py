"""How long something takes, as a user writes it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simcore.workload.config.section import Section

_LONGEST_S = 1e7
_PauseSeconds = Annotated[float, Field(ge=0, le=_LONGEST_S)]
_PauseLongerThanZero = Annotated[float, Field(gt=0, le=_LONGEST_S)]


class FixedTime(Section):
    """Every time is ``time_s``."""

    name: Literal["fixed"]
    time_s: _PauseSeconds
    """Every time, seconds."""


class UniformTime(Section):
    """Times between ``low_s`` and ``high_s``."""

    name: Literal["uniform"]
    low_s: _PauseSeconds
    """Shortest time, seconds."""
    high_s: _PauseSeconds
    """Longest time, seconds."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low_s > self.high_s:
            raise ValueError(f"low_s no greater than high_s, not {self.low_s:g} and {self.high_s:g}")
        return self


class ExponentialTime(Section):
    """Exponential times of mean ``mean_s``."""

    name: Literal["exponential"]
    mean_s: _PauseLongerThanZero
    """Mean, seconds."""


class LognormalTime(Section):
    """Lognormal with ``median_s`` and ``sigma`` (standard deviation of the natural logarithm), up to ``max_s``."""

    name: Literal["lognormal"]
    median_s: _PauseLongerThanZero
    """Median before the bound, seconds."""
    sigma: Annotated[float, Field(gt=0, le=10)]
    """Standard deviation of the natural logarithm."""
    max_s: _PauseLongerThanZero = _LONGEST_S
    """Longest time, seconds. A longer one is drawn again, not clipped."""

    @model_validator(mode="after")
    def _median_within_bounds(self) -> Self:
        if self.median_s > self.max_s:
            raise ValueError(f"median_s no greater than max_s, not {self.median_s:g} and {self.max_s:g}")
        return self


Duration = Annotated[FixedTime | UniformTime | ExponentialTime | LognormalTime, Field(discriminator="name")]
