"""Low-rank adapters over one base model."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.workload.config.section import Section


class Adapters(Section):
    """LoRA adapters, of which each request uses one."""

    count: Annotated[int, Field(ge=1, le=1_000_000)]
    """How many there are, all in host memory."""
    slots: Annotated[int, Field(ge=1, le=10_000)] = 8
    """How many a replica has in GPU memory at once. No more are in use in a step."""
    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    """Rank of each."""
    targets: Literal["attention", "all"] = "all"
    """What is adapted: projections of attention, or those of feed-forward blocks too."""
    of: Literal["request", "session", "tenant"] = "request"
    """What has one adapter: each request, each session or each tenant draws one by chance of the seed."""
    popularity: Annotated[float, Field(ge=0, le=10)] = 1.0
    """Exponent of Zipf's law, by which some are drawn more often than others; 0 for all alike."""
