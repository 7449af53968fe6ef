"""What ``profile.yaml`` holds: where each table of a profile comes from, its ranges, rates and held-out errors."""

from collections.abc import Collection
from datetime import date
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator, ConfigDict, Field

from simcore.core.errors import InputError, Phrase, UnknownNameError
from simcore.core.validation import explain
from simcore.core.yaml_text import read_yaml
from simcore.cost.calibrated.errors import LEVELS, ErrorQuantiles

PROFILE_FILE = "profile.yaml"
SCHEMA: Literal[1] = 1
"""The version of the form."""
ERRORS_BY_DTYPE = ("gemm", "moe")
"""The kinds whose errors are stated for every dtype that has rates."""


class _Strict(pydantic.BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


NOT_STATED = "not stated"
"""What stands for a day that nobody told."""
Seconds = Annotated[float, Field(ge=1e-12, le=1e3)]
PerSecond = Annotated[float, Field(ge=1.0, le=1e24)]
Share = Annotated[float, Field(ge=0, le=1)]
Error = Annotated[float, Field(ge=0, le=100)]
SignedError = Annotated[float, Field(ge=-100, le=100)]
Factor = Annotated[float, Field(gt=0, le=1e6)]
HostSeconds = Annotated[float, Field(ge=0, le=1e3)]
Samples = Annotated[int, Field(ge=1, le=10**12)]


def _day(text: str) -> str:
    if text == NOT_STATED:
        return text
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"a day such as 2026-11-29, or {NOT_STATED!r}") from None
    return text


Day = Annotated[str, AfterValidator(_day)]
Dimension = Annotated[int, Field(ge=0, le=2**62)]
_ALL = "all"


class _Rates(_Strict):
    floor_s: Seconds
    flops_per_s: PerSecond
    bytes_per_s: PerSecond


class _HeldOut(_Strict):
    points: Samples
    median: Error
    p90: Error
    bias: SignedError
    quantiles: list[SignedError] = Field(min_length=len(LEVELS), max_length=len(LEVELS))
    within_3_percent: Share | None = None
    within_10_percent: Share | None = None

    def quantiles_of(self) -> ErrorQuantiles:
        return ErrorQuantiles(
            self.points,
            self.median,
            self.p90,
            self.bias,
            tuple(self.quantiles),
            self.within_3_percent,
            self.within_10_percent,
        )


class _Noise(_Strict):
    median: Error
    p90: Error


class Repeat(_Strict):
    """Rows of a table that measure shapes which another table holds before it, the kernel being the same.

    ``p10``, ``median`` and ``p90`` are of what they took over what those took.
    """

    rows: str
    beside: str
    shapes: Samples
    p10: Factor
    median: Factor
    p90: Factor


class _Table(_Strict):
    source: str
    licence: str
    date: Day
    versions: list[str]
    samples: Samples
    ranges: dict[str, Annotated[list[Dimension], Field(min_length=2, max_length=2)]]
    rates: dict[str, _Rates] = {}
    held_out: dict[str, _HeldOut]
    noise: dict[str, _Noise] = {}
    repeats: list[Repeat] = []
    launched_apart: bool = False
    """Whether the prompt chunks of a step are launched one by one."""


class MeasuredHost(_Strict):
    """What the engine's host was measured to add to a step, seconds: whatever it does, and for each of its requests.

    ``median_error`` is that of the two constants over the ``steps`` that were measured.
    """

    step_s: HostSeconds
    per_request_s: HostSeconds
    steps: Samples
    median_error: Error


class ProfileDocument(_Strict):
    """A profile without its tables of latencies.

    ``machine`` says what was measured on: the device, versions of what computes, threads; an engine of another kind
    runs other kernels. Profiles of public measurements have neither that nor a ``host``.
    """

    profile_schema: Literal[1] = SCHEMA
    accelerator: str
    engine: str
    version: str
    machine: dict[str, str] = {}
    host: MeasuredHost | None = None
    tables: dict[str, _Table]


def read_document(folder: Traversable | Path, kinds: Collection[str]) -> ProfileDocument:
    """The document of a profile's folder. Raises ``FileError`` or ``InputError``, also for other kernel kinds."""
    shown = str(folder / PROFILE_FILE)
    try:
        found = ProfileDocument.model_validate(read_yaml(folder / PROFILE_FILE))
    except pydantic.ValidationError as error:
        raise explain(error, ProfileDocument, f"{shown}: ") from error
    for kind, table in found.tables.items():
        if kind not in kinds:
            raise UnknownNameError(f"{shown}: tables", kind, kinds)
        for name in (_ALL, *(table.rates if kind in ERRORS_BY_DTYPE else ())):
            if name not in table.held_out:
                raise InputError(f"{shown}: tables.{kind}.held_out.{name}", Phrase("missing"), "its held-out errors")
    return found
