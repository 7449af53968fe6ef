"""The KV memory of one replica, from its section of a scenario."""

from collections.abc import Callable
from hashlib import blake2b

from policies.batching import Batching
from policies.eviction import Eviction
from simcore.build.memory_plan import MemoryPlan, counts_suffice, kv_format
from simcore.build.turns import turns_of
from simcore.core.clock import to_s
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.cost.recompute import RecomputeCost
from simcore.memory import KVMemory
from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.block_pool import Expiry
from simcore.memory.free_order import CachedBlock, RankedOrder
from simcore.memory.group_counter import KVGroupCounter
from simcore.memory.group_manager import KVGroupManager
from simcore.memory.kept_states import KeptStates
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.memory.leaf_order import DescribeRun, LeafOrder
from simcore.memory.partitions import KVPartitions, PartManager, divide_blocks
from simcore.memory.radix_counter import KVRadixCounter
from simcore.memory.radix_manager import KVRadixManager
from simcore.memory.request_keys import Namespace
from simcore.memory.reserved import ReservedMemory
from simcore.memory.state_counter import KVStateCounter
from simcore.memory.state_manager import KVStateManager
from simcore.memory.tiers import Timer
from simcore.models import ModelSpec
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy


def build_memory(
    scenario: Scenario,
    spec: ModelSpec,
    plan: MemoryPlan,
    shares_content: bool,
    timer: Timer,
    numbered: bool = False,
) -> KVMemory:
    """Blocks one by one where it matters which of them are cached, or where they must be ``numbered``; else counts.

    Where an engine reads numbered blocks, none is found that was never computed.
    Of a model with linear attention they are cached where requests have something in common, and found where states
    were kept; else a preempted request finds none.
    """
    section, total_blocks = scenario.memory, plan.request_blocks
    prefix_caching = section.prefix_caching and not spec.has_linear_attention
    turns = turns_of(scenario)
    batching: Batching = build_policy("batching", scenario.scheduler.batching, "scheduler.batching")
    max_chunk_tokens = spec.max_context_tokens if batching.whole_prompts else plan.demand.max_batched_tokens
    groups = plan.layout, max_chunk_tokens
    if section.reservation != "none":
        if numbered:
            raise InputError("memory.reservation", section.reservation, "none, where single blocks count")
        longest = scenario.max_context_tokens or spec.max_context_tokens
        return ReservedMemory(total_blocks, section.block_size_tokens, section.reservation, longest)
    if turns is None and not numbered and counts_suffice(scenario, shares_content):
        if plan.layout.releases:
            return KVGroupCounter(total_blocks, section.block_size_tokens, *groups)
        return KVBlockCounter(total_blocks, section.block_size_tokens, prefix_caching)
    cache = section.prefix_cache
    eviction: Eviction = build_policy("eviction", cache.eviction, "memory.prefix_cache.eviction")
    hashed = cache.index == "hash"
    namespace = _namespace(cache.share_between_tenants, cache.salt)

    expiry = None if cache.expires_after_s is None else Expiry(cache.expires_after_s, lambda: to_s(timer.now_ns))
    facts = spec, section.block_size_tokens, kv_bytes_per_token(spec, kv_format(scenario, spec))

    def ranking() -> Eviction:
        policy: Eviction = build_policy("eviction", cache.eviction, "memory.prefix_cache.eviction")
        return policy

    def kept_states(blocks: int) -> KeptStates:
        every_blocks = cache.state_interval_tokens // section.block_size_tokens
        return KeptStates(max(plan.demand.kept_states * blocks // total_blocks, 1), every_blocks)

    if turns is not None:
        leaves = None if eviction.by_release else LeafOrder(ranking(), describe_runs(*facts))
        if plan.demand.kept_states:
            states = kept_states(total_blocks)
            return KVStateCounter(total_blocks, section.block_size_tokens, states, namespace, leaves, expiry)
        return KVRadixCounter(total_blocks, section.block_size_tokens, prefix_caching, namespace, leaves, expiry)

    def manager(blocks: int) -> PartManager:
        if prefix_caching and not hashed:
            leaves = None if eviction.by_release else LeafOrder(ranking(), describe_runs(*facts))
            return KVRadixManager(blocks, section.block_size_tokens, namespace, leaves, expiry)
        order = None if eviction.by_release else RankedOrder(ranking(), describe_blocks(*facts))
        if plan.layout.releases:
            return KVGroupManager(
                blocks, section.block_size_tokens, *groups, prefix_caching, namespace, order, expiry, numbered
            )
        if plan.demand.kept_states and not numbered:
            states = kept_states(blocks)
            return KVStateManager(blocks, section.block_size_tokens, states, namespace, order, expiry)
        tiers_below = bool(section.tiers)
        return KVBlockManager(
            blocks, section.block_size_tokens, prefix_caching, namespace, order, expiry, tiers_below, numbered
        )

    if not cache.tenant_shares:
        return manager(total_blocks)
    named, others = divide_blocks(total_blocks, cache.tenant_shares)
    return KVPartitions({tenant: manager(blocks) for tenant, blocks in named.items()}, manager(others))


def describe_blocks(spec: ModelSpec, block_size_tokens: int, bytes_per_token: int) -> Callable[[int, int], CachedBlock]:
    """How an eviction policy sees the blocks of a model: by the number of blocks before, and a level of priority."""
    describe_run = describe_runs(spec, block_size_tokens, bytes_per_token)
    return lambda place, priority: describe_run(place, 1, priority)


def describe_runs(spec: ModelSpec, block_size_tokens: int, bytes_per_token: int) -> DescribeRun:
    """How an eviction policy sees runs of blocks: by the blocks before them, their own number, and a level."""
    cost = RecomputeCost(spec)

    def describe(place: int, blocks: int, priority: int) -> CachedBlock:
        before, tokens = place * block_size_tokens, blocks * block_size_tokens
        return CachedBlock(before, priority, cost.flops(before, tokens), tokens * bytes_per_token)

    return describe


def _namespace(share_between_tenants: bool, salt: str) -> Namespace:
    """Which requests may share blocks: all of one salt, or those of each tenant apart."""
    by_tenant: dict[str, bytes] = {}

    def namespace(request: Request) -> bytes:
        tenant = "" if share_between_tenants else request.tenant
        if tenant not in by_tenant:
            by_tenant[tenant] = blake2b(repr((tenant, salt)).encode(), digest_size=12).digest()
        return by_tenant[tenant]

    return namespace
