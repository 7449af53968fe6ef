"""What values of a scenario may be."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from simcore.workload.lengths import MAX_TOKENS

Count = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Share = Annotated[float, Field(ge=0.001, le=1)]
# The clock holds 292 years; far shorter times are absurd where they recur with every step, request or kernel.
StepSeconds = Annotated[float, Field(ge=0, le=3600)]
KernelSeconds = Annotated[float, Field(ge=0, le=1)]
_LONGEST_LEVEL = 20
"""Digits of a level; Python does not read whole numbers of many thousand."""


def _is_policy(section: Any) -> Any:
    if not isinstance(section, Mapping):
        raise ValueError("the name of a policy, or a mapping of its name and parameters")
    return section


Policy = Annotated[dict[str, Any], BeforeValidator(_is_policy)]


def _is_whole(key: Any) -> bool:
    return isinstance(key, str) and key.isdecimal() and len(key) <= _LONGEST_LEVEL


def with_whole_keys(value: Any) -> Any:
    """A mapping by level, whose keys are text where it comes back from JSON."""
    if isinstance(value, dict) and value and all(map(_is_whole, value)):
        return {int(key): inner for key, inner in value.items()}
    return value
