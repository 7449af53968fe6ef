"""Engine versions: what was otherwise before one, and limits that follow the accelerator."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from simcore.core.errors import InputError
from simcore.engines.fusion import Fusion

_NUMBER = re.compile(r"\d+")
_SEPARATOR = "@"
Limit = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True)


class Before(_Strict):
    """What versions before ``before`` have otherwise: settings of the host, and what is fused."""

    before: str
    host: dict[str, Any] = {}
    fusion: Fusion | None = None
    source: str


class DefaultLimits(_Strict):
    """Tokens and requests of a step by default on accelerators of at least so much memory whose name lacks a part."""

    least_memory_gib: float = 0.0
    not_named: str | None = None
    max_batched_tokens: Limit
    max_running_requests: Limit

    def fit(self, accelerator: str, memory_gib: float) -> bool:
        """Whether an accelerator is one of them."""
        return memory_gib >= self.least_memory_gib and (self.not_named is None or self.not_named not in accelerator)


class Versions(_Strict):
    """The versions that a preset knows, ``first`` to ``last``; the first limits that fit an accelerator count."""

    first: str
    last: str
    changes: list[Before] = []
    limits: list[DefaultLimits] = []
    source: str

    def change(self, version: str) -> Before | None:
        """What a version has otherwise than the preset says: the change nearest to it counts."""
        later = [change for change in self.changes if number_of(version) < number_of(change.before)]
        return min(later, key=lambda change: number_of(change.before), default=None)

    def limits_on(self, accelerator: str, memory_gib: float) -> dict[str, int]:
        """The limits of a step by default on an accelerator, as settings of the batching policy."""
        found = next((limits for limits in self.limits if limits.fit(accelerator, memory_gib)), None)
        if found is None:
            return {}
        return {"max_batched_tokens": found.max_batched_tokens, "max_running_requests": found.max_running_requests}

    def stand_in(self, version: str) -> str | None:
        """The version that stands for one that is not known; None for one that is."""
        if number_of(version) < number_of(self.first):
            return self.first
        return self.last if number_of(version)[:2] > number_of(self.last)[:2] else None


def number_of(version: str) -> tuple[int, ...]:
    """A version as numbers to compare: its release, without what follows."""
    release = re.split(r"(rc|post|dev|[a-z+])", version, maxsplit=1)[0]
    return tuple(int(part) for part in _NUMBER.findall(release))


def split_name(engine: str) -> tuple[str, str | None]:
    """Name and version of ``vllm@0.12``; raises ``InputError`` for a version that begins with no number."""
    name, separator, version = engine.partition(_SEPARATOR)
    if separator and not number_of(version):
        raise InputError("engine", engine, f"a version after {name}{_SEPARATOR}, such as {name}{_SEPARATOR}0.12")
    return name, version if separator else None
