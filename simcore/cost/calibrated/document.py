"""What ``profile.yaml`` holds: where each table of a profile comes from, its ranges, rates and held-out errors."""

from collections.abc import Collection
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic import ConfigDict, Field

from simcore.core.errors import UnknownNameError
from simcore.core.validation import explain
from simcore.core.yaml_text import read_yaml
from simcore.cost.calibrated.errors import LEVELS, ErrorQuantiles

PROFILE_FILE = "profile.yaml"


class _Strict(pydantic.BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


Positive = Annotated[float, Field(gt=0)]


class _Rates(_Strict):
    floor_s: Positive
    flops_per_s: Positive
    bytes_per_s: Positive


class _HeldOut(_Strict):
    points: int = Field(ge=1)
    median: float = Field(ge=0)
    p90: float = Field(ge=0)
    bias: float
    quantiles: list[float] = Field(min_length=len(LEVELS), max_length=len(LEVELS))
    within_3_percent: float | None = Field(None, ge=0, le=1)
    within_10_percent: float | None = Field(None, ge=0, le=1)

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
    median: float = Field(ge=0)
    p90: float = Field(ge=0)


class Repeat(_Strict):
    """Rows of a table that measure shapes which another table holds before it, the kernel being the same.

    ``p10``, ``median`` and ``p90`` are of what they took over what those took.
    """

    rows: str
    beside: str
    shapes: int = Field(ge=1)
    p10: Positive
    median: Positive
    p90: Positive


class _Table(_Strict):
    source: str
    licence: str
    date: str
    versions: list[str]
    samples: int = Field(ge=1)
    ranges: dict[str, Annotated[list[int], Field(min_length=2, max_length=2)]]
    rates: dict[str, _Rates] = {}
    held_out: dict[str, _HeldOut]
    noise: dict[str, _Noise] = {}
    repeats: list[Repeat] = []


class ProfileDocument(_Strict):
    """A profile without its tables of latencies."""

    accelerator: str
    engine: str
    version: str
    tables: dict[str, _Table]


def read_document(folder: Traversable | Path, kinds: Collection[str]) -> ProfileDocument:
    """The document of a profile's folder. Raises ``FileError`` or ``InputError``, also for other kernel kinds."""
    shown = str(folder / PROFILE_FILE)
    try:
        found = ProfileDocument.model_validate(read_yaml(folder / PROFILE_FILE))
    except pydantic.ValidationError as error:
        raise explain(error, ProfileDocument, f"{shown}: ") from error
    for kind in found.tables:
        if kind not in kinds:
            raise UnknownNameError(f"{shown}: tables", kind, kinds)
    return found
