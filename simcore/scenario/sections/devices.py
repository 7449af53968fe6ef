"""The accelerators of like replicas, and how each replica is divided among its own."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.core.bounds import UsdPerHour
from simcore.scenario.sections.bounds import Count
from simcore.scenario.sections.scaling import Scaling, Spot
from simcore.workload.config.section import Section, Text


class Devices(Section):
    """The accelerators, and how a model is split among them."""

    accelerator: Text
    """A name that ``servetwin hardware`` lists, or the path of a profile in YAML."""
    replicas: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Copies of the whole model, at most 10,000."""
    tensor_parallel: Count = 1
    """Ranks that share every matrix."""
    pipeline_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    """Stages of layers. Each stage has ranks of its own, and as many batches are in flight."""
    data_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    """Data-parallel ranks. Each has requests, attention and KV cache of its own; all share the experts."""
    expert_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    """Ranks that experts are dealt out to whole."""
    context_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    """Ranks on a ring. Each holds a part of every prompt and of the KV cache."""
    pcie: Literal["auto", "peer", "host"] = "auto"
    """How accelerators without links of their own talk: over PCIe (``peer``) or by the memory of the ``host``."""
    network_gb_per_s: Annotated[float, Field(gt=0, le=1e6)] = 50.0
    """Rate between nodes for each accelerator and direction, GB/s (10^9 bytes)."""
    price_usd_per_h: UsdPerHour | None = None
    """Price of one accelerator, USD per hour. By default that of its profile."""
    scaling: Scaling | None = None
    """How the number of replicas changes. By default it does not."""
    spot: Spot | None = None
    """How the provider takes instances back. By default it does not. Needs ``scaling``, which replaces them."""

    @property
    def devices_per_replica(self) -> int:
        """Accelerators of one model instance."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel * self.context_parallel

    @property
    def places(self) -> int:
        """Replicas that there can be at once, those included that sleep or are on their way out."""
        scaling = self.scaling
        if scaling is None:
            return self.replicas
        leaving = scaling.max_replicas if self.spot is not None else 0
        return scaling.max_replicas + scaling.warm_replicas + leaving
