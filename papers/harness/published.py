"""What a paper published, and what we claim of it: the data file beside its module."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from papers.harness.study import PUBLISHED
from simcore.core.yaml_text import read_yaml


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Comparison(_Part):
    """A figure of one system, or with ``over`` its ratio to that of another on the same arrivals."""

    words: str
    figure: str
    of: str
    over: str | None = None
    setup: str = PUBLISHED
    over_setup: str | None = None
    """The setup of ``over``, where it is another than ``setup``."""
    unit: str = ""


class Claim(Comparison):
    """A comparison whose value was published.

    It holds if our value is within ``tolerance`` of the published one, or of the nearest end of the published range,
    and its interval excludes ``beyond`` on the side on which the published value lies. It holds in direction if the
    interval does that alone. ``beyond`` null: the value itself counts, and there is no direction.
    """

    published: float | tuple[float, float]
    status: str
    beyond: float | None = 1.0
    tolerance: float = Field(default=0.25, ge=0)
    why: str = ""
    """Where it does not hold in full: why, as far as ablations tell."""

    @property
    def published_range(self) -> tuple[float, float]:
        """The least and the greatest published value."""
        return self.published if isinstance(self.published, tuple) else (self.published, self.published)

    @model_validator(mode="after")
    def _has_a_direction(self) -> "Claim":
        low, high = self.published_range
        if self.beyond is not None and low <= self.beyond <= high:
            raise ValueError(f"beyond {self.beyond} lies within what was published, so there is no direction")
        return self


class Practice(_Part):
    """What a practitioner would do today, by what the last comparisons of ``today`` say."""

    comparisons: list[Comparison]
    pays: str
    """Where all of them favour the idea."""
    differs: str
    """Where some do and others do not."""
    costs: str
    """Where none does."""
    less_is_better: bool = False


class Published(_Part):
    """A paper's data file."""

    title: str
    authors: str
    venue: str
    idea: str
    setting: str
    """The conditions as published."""
    substitute: str
    """In what ours differ."""
    rule: str = ""
    """What a rule other than that of ``Claim`` means; it was written before the run."""
    claims: list[Claim]
    ablations: list[Comparison] = []
    sensitivity: list[Comparison] = []
    today: Practice
    curves: dict[str, Any] = {}
    """Published values that charts show."""
    parameters: dict[str, Any] = {}
    """Settings of the experiment with their sources, such as lengths of requests."""


def read_published(path: Path) -> Published:
    """The data file at ``path``."""
    return Published.model_validate(read_yaml(path))
