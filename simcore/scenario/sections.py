"""The sections of a scenario document, as a user writes them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from simcore.core.bounds import UsdPerHour
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.engines import DEFAULT_ENGINE
from simcore.memory.kv_bytes import CHANNEL_GROUP
from simcore.models.weight_formats import WeightFormatName
from simcore.scenario.tier_sections import TIER_ORDER, Gigabytes, HostLink, TierSection
from simcore.workload.config import LongerThanZero, Seconds, WorkloadConfig
from simcore.workload.lengths import MAX_TOKENS

Count = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Share = Annotated[float, Field(ge=0.001, le=1)]
# The clock holds 292 years; far shorter times are absurd where they recur with every step, request or kernel.
StepSeconds = Annotated[float, Field(ge=0, le=3600)]
KernelSeconds = Annotated[float, Field(ge=0, le=1)]
Percentile = Literal["p50", "p90", "p95", "p99", "p999"]
Text = Annotated[str, Field(min_length=1)]


def _is_policy(section: Any) -> Any:
    if not isinstance(section, Mapping):
        raise ValueError("the name of a policy, or a mapping of its name and parameters")
    return section


ExpertWeights = Annotated[list[Annotated[float, Field(ge=0, le=1e9)]], Field(min_length=1, max_length=65536)]
Policy = Annotated[dict[str, Any], BeforeValidator(_is_policy)]
_HOST = HostOverhead()
_ROOFLINE = RooflineEfficiency()


_LONGEST_LEVEL = 20
"""Digits of a level; Python does not read whole numbers of many thousand."""
Level = Annotated[int, Field(ge=0)]
Blocks = Annotated[int, Field(ge=0, le=2**31 - 1)]


class _Section(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Cluster(_Section):
    """The machines: ``replicas`` model instances, each over ``tensor_parallel`` accelerators of every one
    of ``pipeline_parallel`` stages. With ``data_parallel`` there are so many groups of these, which share the requests
    of a replica and its experts; ``expert_parallel`` of all their ranks have experts of their own. The weights are
    there ``context_parallel`` times: each has a part of every prompt and of the KV cache.

    Accelerators without links of their own talk over PCIe: to each other's memory (``peer``), or through that of the
    host. ``network_gb_per_s`` is the rate between nodes for each accelerator, per direction.

    ``price_usd_per_h`` is per accelerator and overrides the one of its profile.
    """

    accelerator: Text
    replicas: Annotated[int, Field(ge=1, le=10_000)] = 1
    tensor_parallel: Count = 1
    pipeline_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    data_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    expert_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    context_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    pcie: Literal["auto", "peer", "host"] = "auto"
    network_gb_per_s: Annotated[float, Field(gt=0, le=1e6)] = 50.0
    routing: Policy = {"name": "round-robin"}
    price_usd_per_h: UsdPerHour | None = None

    @property
    def devices_per_replica(self) -> int:
        """Accelerators of one model instance."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel * self.context_parallel


class Precision(_Section):
    """Number formats, by default as the model was published: ``weights``, and ``kv_cache``, else in 16 bits.

    ``kv_scales`` tells how many numbers of a quantised cache share a scale (see ``simcore.memory.kv_bytes``).
    """

    weights: Literal["auto", WeightFormatName] = "auto"
    kv_cache: Literal["auto", "bf16", "fp16", "fp32", "fp8", "int8", "int4"] = "auto"
    kv_scales: Literal["auto", "tensor", "token", "token-head", "channel-group"] = "auto"
    kv_group_size: Annotated[int, Field(ge=1, le=1024)] = CHANNEL_GROUP


class PrefixCache(_Section):
    """What the prefix cache keeps and for whom.

    Tenants share nothing unless ``share_between_tenants``; runs of different ``salt`` never find each other's blocks.
    A block that no request holds is given up by the ``eviction`` policy when memory is needed, and not found any more
    ``expires_after_s`` after it was released. ``tenant_shares`` give named tenants shares of all KV memory for
    themselves alone, in use and in the cache; the others have what is left. ``index`` is how blocks are found, and with
    it when they enter and how they are given up: as in vLLM (``hash``) or SGLang (``radix``). The prompts of the first
    ``warm_up_requests`` of the workload are in the cache from the start, of each the first ``pinned_tokens`` for good.
    """

    index: Literal["hash", "radix"] = "hash"
    eviction: Policy = {"name": "lru"}
    share_between_tenants: bool = False
    salt: str = ""
    expires_after_s: LongerThanZero | None = None
    warm_up_requests: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    pinned_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    tenant_shares: dict[Text, Share] = {}

    @field_validator("tenant_shares")
    @classmethod
    def _no_more_than_all(cls, shares: dict[str, float]) -> dict[str, float]:
        if sum(shares.values()) > 1:
            raise ValueError(f"shares that add up to at most 1, not {sum(shares.values()):g}")
        return shares


class Retention(_Section):
    """What is kept of a request in memory: all, or in every layer no more than stated.

    ``window_tokens`` keeps the last tokens and the first ``sink_tokens`` (StreamingLLM, by default its 4);
    ``budget_tokens`` keeps so many tokens, wherever they are (H2O).
    """

    window_tokens: Count | None = None
    sink_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] | None = None
    budget_tokens: Count | None = None

    @field_validator("sink_tokens")
    @classmethod
    def _beside_a_window(cls, tokens: int | None, info: ValidationInfo) -> int | None:
        if tokens is not None and info.data.get("window_tokens", 0) is None:
            raise ValueError("nothing without window_tokens, beside which the first tokens stay")
        return tokens

    @field_validator("budget_tokens")
    @classmethod
    def _one_of_them(cls, tokens: int | None, info: ValidationInfo) -> int | None:
        if tokens is not None and info.data.get("window_tokens") is not None:
            raise ValueError("nothing beside window_tokens, as a request keeps a window or a budget")
        return tokens


class Memory(_Section):
    """KV memory: computed from the accelerator's as an engine does, or given in blocks of each replica.

    ``null_blocks`` are kept aside by the engine and hold no request's tokens. A ``watermark_share`` of the blocks must
    stay free when a request is admitted beside others. With ``prefix_caching``, full blocks that nobody holds any more
    serve requests that begin with the same tokens, until the memory is needed. Of ``kv_sharing_layers`` layers in
    succession the first has a KV cache, which the others read.

    A request takes blocks as its tokens need them, unless ``reservation`` gives it, on admission and until it ends,
    blocks for its prompt and the most that it may generate (``limit``) or for the longest context (``longest``).

    Copies of full blocks go to the ``tiers`` below, from which they are loaded. ``swap_space_gb`` of CPU memory is for
    requests that are swapped out.
    """

    block_size_tokens: Annotated[int, Field(ge=1, le=65_536)] = 16
    gpu_memory_utilization: Share = 0.9
    num_gpu_blocks: Count | None = None
    null_blocks: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    watermark_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    reservation: Literal["none", "limit", "longest"] = "none"
    prefix_caching: bool = False
    prefix_cache: PrefixCache = PrefixCache()
    kv_sharing_layers: Annotated[int, Field(ge=1, le=10_000)] = 1
    retention: Retention = Retention()
    tiers: list[TierSection] = []
    load_from_tiers: Literal["always", "if-faster"] = "always"
    prefetch_from_tiers: bool = False
    swap_space_gb: Gigabytes = 4.0
    host_link: HostLink = HostLink()

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


def _is_whole(key: Any) -> bool:
    return isinstance(key, str) and key.isdecimal() and len(key) <= _LONGEST_LEVEL


def with_whole_keys(value: Any) -> Any:
    """A mapping by level, whose keys are text where it comes back from JSON."""
    if isinstance(value, dict) and value and all(map(_is_whole, value)):
        return {int(key): inner for key, inner in value.items()}
    return value


class Preemption(_Section):
    """What happens when KV memory runs short: who gives way, and how.

    ``reserved_blocks`` maps levels of priority to KV blocks that only requests of that level, or more urgent ones, may
    be admitted into, so that patient requests can never keep urgent ones out. With ``inherit_priority`` requests that
    hold the memory for which a more urgent one waits are served first while memory is short.
    """

    mode: Literal["recompute", "swap", "wait", "reject"] = "recompute"
    victim: Policy = {"name": "latest"}
    reserved_blocks: Annotated[
        dict[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0, le=2**31 - 1)]], BeforeValidator(with_whole_keys)
    ] = {}
    inherit_priority: bool = False

    @field_validator("inherit_priority")
    @classmethod
    def _only_where_nobody_gives_way(cls, inherit_priority: bool, info: ValidationInfo) -> bool:
        if inherit_priority and info.data.get("mode") != "wait":
            raise ValueError("false, except with mode 'wait': in other modes memory is taken from its holder")
        return inherit_priority


class SchedulerSection(_Section):
    """The policies of every replica's scheduler."""

    admission: list[Policy] = []
    ordering: Policy = {"name": "fcfs"}
    batching: Policy = {"name": "chunked-prefill"}
    preemption: Preemption = Preemption()
    reserve_whole_prompt: bool = True


class Host(_Section):
    """What the host takes (see ``simcore.cost.assumptions.HostOverhead``)."""

    step_s: StepSeconds = _HOST.step_s
    per_request_s: KernelSeconds = _HOST.per_request_s
    launch_s: KernelSeconds = _HOST.launch_s
    max_cudagraph_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = _HOST.max_cudagraph_tokens
    mixed_graphs: bool = _HOST.mixed_graphs
    request_s: StepSeconds = _HOST.request_s
    per_prompt_token_s: KernelSeconds = _HOST.per_prompt_token_s
    async_scheduling: bool = _HOST.async_scheduling
    compiled: bool = _HOST.compiled
    linear_prompt_s: StepSeconds = _HOST.linear_prompt_s


class Efficiency(_Section):
    """Shares of datasheet peaks that kernels reach, for roofline prices (see ``simcore.cost.assumptions``)."""

    matmul_compute: Share = _ROOFLINE.matmul_compute
    matmul_memory: Share = _ROOFLINE.matmul_memory
    attention_compute: Share = _ROOFLINE.attention_compute
    attention_memory: Share = _ROOFLINE.attention_memory
    kernel_floor_s: KernelSeconds = _ROOFLINE.kernel_floor_s
    interconnect: Share = _ROOFLINE.interconnect
    collective_floor_s: KernelSeconds = _ROOFLINE.collective_floor_s


class Pricing(_Section):
    """Where prices of kernels come from.

    ``profile`` is "auto" (the accelerator's newest profile that has what the run needs, of the preset's engine or else
    of vLLM, if one is shipped; else the roofline), "roofline", the name of a shipped profile or the path of a folder.
    ``expert_kernels`` is "auto" (what the engine takes by default) or kernels by the name that the profile's table of
    experts has for them, such as "marlin". ``routing`` is how tokens spread over experts: evenly, with a mild skew, or
    as often as weights by expert say, which lie in order on expert-parallel ranks.
    """

    profile: Text = "auto"
    expert_kernels: Text = "auto"
    routing: Literal["balanced", "power-law"] | ExpertWeights = "power-law"


class Objectives(_Section):
    """Service level objectives: a limit in seconds for a percentile, such as ``ttft_s: {p99: 2.0}``.

    A request counts into goodput if it keeps every limit; an objective is met if the share of requests that keep its
    limit is at least its percentile.
    """

    ttft_s: dict[Percentile, LongerThanZero] = {}
    tpot_s: dict[Percentile, LongerThanZero] = {}
    e2e_s: dict[Percentile, LongerThanZero] = {}


class Measurement(_Section):
    """Which requests are measured: those that arrive after ``warmup_s``; the run is cut off at ``end_s``, if given."""

    warmup_s: Seconds = 0.0
    end_s: LongerThanZero | None = None

    @field_validator("end_s")
    @classmethod
    def _after_warmup(cls, end_s: float | None, info: ValidationInfo) -> float | None:
        warmup_s = info.data.get("warmup_s", 0.0)
        if end_s is not None and end_s <= warmup_s:
            raise ValueError(f"more than the warmup_s of {warmup_s:g}")
        return end_s


class Scenario(_Section):
    """Everything a run depends on.

    ``max_context_tokens`` bounds prompt and output together, by default the model's own limit.
    """

    model: Text
    cluster: Cluster
    workload: WorkloadConfig
    engine: str = DEFAULT_ENGINE
    seed: Annotated[int, Field(ge=0)] = 0
    max_context_tokens: Count | None = None
    precision: Precision = Precision()
    memory: Memory = Memory()
    scheduler: SchedulerSection = SchedulerSection()
    host: Host = Host()
    pricing: Pricing = Pricing()
    efficiency: Efficiency = Efficiency()
    slo: Objectives = Objectives()
    measurement: Measurement = Measurement()

    def document(self) -> dict[str, Any]:
        """The scenario in full, every default filled in, as plain data."""
        return self.model_dump(mode="json", exclude_none=True)
