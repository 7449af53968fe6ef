"""Replicas that are updated while the service goes on."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.workload.config.section import LongerThanZero, Seconds, Section, Text


class Update(Section):
    """The replicas of a pool become like those of another: its engine, its settings, its number formats."""

    name: Literal["rolling", "blue-green"]
    pool: Text
    """Name of the pool that is updated."""
    to: Text
    """Name of the pool whose replicas its own become like."""
    at_s: Seconds
    """When it begins, seconds from the start of the run."""
    load_s: LongerThanZero = 30.0
    """Seconds from the start of a new replica to its first request: weights are loaded, kernels compiled."""
    most_out: Annotated[int, Field(ge=1)] = 1
    """Replicas that a ``rolling`` update takes out at once."""
