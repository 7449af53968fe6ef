"""The KV memory of a scenario."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from simcore.scenario.sections.bounds import Count, Share
from simcore.scenario.sections.reuse import PrefixCache, Retention
from simcore.scenario.sections.tiers import TIER_ORDER, Gigabytes, HostLink, TierSection
from simcore.workload.config.section import Section
from simcore.workload.lengths import MAX_TOKENS


class Memory(Section):
    """KV memory: computed from the accelerator's as an engine does, or given in blocks of each replica."""

    block_size_tokens: Annotated[int, Field(ge=1, le=65_536)] = 16
    """Tokens in a KV block, at most 65,536."""
    gpu_memory_utilization: Share = 0.9
    """Share of an accelerator's memory that weights, activations and KV cache may take."""
    num_gpu_blocks: Count | None = None
    """KV blocks of each replica, as an engine's log prints them. By default computed from the memory."""
    null_blocks: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    """Blocks that the engine keeps aside. They hold no request's tokens."""
    watermark_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the blocks that stays free when a request is admitted beside others. vLLM V0 had 0.01."""
    reservation: Literal["none", "limit", "longest"] = "none"
    """Blocks that a request takes on admission: for its prompt (``none``), to its ``limit``, or the ``longest``."""
    prefix_caching: bool = False
    """Whether requests reuse full blocks of others that began with the same tokens."""
    prefix_cache: PrefixCache = PrefixCache()
    """What the prefix cache keeps, and for whom."""
    kv_sharing_layers: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Layers of a kind in succession that share one KV cache."""
    retention: Retention = Retention()
    """What is kept of each request."""
    tiers: list[TierSection] = []
    """Memory below the GPU's that keeps copies of full blocks: any of ``cpu``, ``ssd``, ``remote``, in this order."""
    load_from_tiers: Literal["always", "if-faster"] = "always"
    """When blocks are loaded: ``always``, or ``if-faster`` than the step would compute them."""
    prefetch_from_tiers: bool = False
    """Whether blocks move from lower tiers to CPU memory while the request that needs them queues."""
    swap_space_gb: Gigabytes = 4.0
    """CPU memory of each replica for requests that are swapped out, GB (10^9 bytes)."""
    host_link: HostLink = HostLink()
    """The link between each accelerator and CPU memory."""

    @field_validator("tiers")
    @classmethod
    def _in_order(cls, tiers: list[TierSection], info: ValidationInfo) -> list[TierSection]:
        places = [TIER_ORDER.index(tier.name) for tier in tiers]
        if places != sorted(set(places)):
            raise ValueError(f"each tier at most once, in the order {', '.join(TIER_ORDER)}")
        cache = info.data.get("prefix_cache", PrefixCache())
        if tiers and not info.data.get("prefix_caching", True):
            raise ValueError("none without prefix_caching, since tiers keep what the prefix cache publishes")
        if tiers and (cache.index != "hash" or cache.tenant_shares):
            raise ValueError("none unless prefix_cache.index is hash and there are no prefix_cache.tenant_shares")
        return tiers
