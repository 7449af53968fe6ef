"""The KV memory of one replica, from its section of a scenario."""

from collections.abc import Callable
from hashlib import blake2b

from policies.eviction import Eviction
from simcore.cost.recompute import RecomputeCost
from simcore.memory import KVMemory
from simcore.memory.block_counter import KVBlockCounter
from simcore.memory.block_manager import KVBlockManager, Namespace
from simcore.memory.block_pool import Expiry
from simcore.memory.free_order import CachedBlock, RankedOrder
from simcore.memory.group_counter import KVGroupCounter
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.memory.partitions import KVPartitions, divide_blocks
from simcore.memory.plan import MemoryPlan, counts_suffice, kv_format
from simcore.models import ModelSpec
from simcore.request import Request
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy


def build_memory(
    scenario: Scenario, spec: ModelSpec, plan: MemoryPlan, shares_content: bool, now_s: Callable[[], float]
) -> KVMemory:
    """Blocks one by one where it matters which of them are cached, else their counts."""
    section, total_blocks = scenario.memory, plan.request_blocks
    if plan.layout.releases:
        return KVGroupCounter(total_blocks, section.block_size_tokens, plan.layout, plan.demand.max_batched_tokens)
    if counts_suffice(scenario, shares_content):
        return KVBlockCounter(total_blocks, section.block_size_tokens, section.prefix_caching)
    cache = section.prefix_cache
    eviction: Eviction = build_policy("eviction", cache.eviction, "memory.prefix_cache.eviction")
    namespace = _namespace(cache.share_between_tenants, cache.salt)

    def manager(blocks: int) -> KVBlockManager:
        order = None
        if not eviction.by_release:
            bytes_per_token = kv_bytes_per_token(spec, kv_format(scenario))
            ranking: Eviction = build_policy("eviction", cache.eviction, "memory.prefix_cache.eviction")
            order = RankedOrder(ranking, describe_blocks(spec, section.block_size_tokens, bytes_per_token))
        expiry = None if cache.expires_after_s is None else Expiry(cache.expires_after_s, now_s)
        return KVBlockManager(blocks, section.block_size_tokens, section.prefix_caching, namespace, order, expiry)

    if not cache.tenant_shares:
        return manager(total_blocks)
    named, others = divide_blocks(total_blocks, cache.tenant_shares)
    return KVPartitions({tenant: manager(blocks) for tenant, blocks in named.items()}, manager(others))


def describe_blocks(spec: ModelSpec, block_size_tokens: int, bytes_per_token: int) -> Callable[[int, int], CachedBlock]:
    """How an eviction policy sees the blocks of a model: by the number of blocks before, and a level of priority."""
    cost, size_bytes = RecomputeCost(spec), block_size_tokens * bytes_per_token

    def describe(place: int, priority: int) -> CachedBlock:
        tokens_before = place * block_size_tokens
        return CachedBlock(tokens_before, priority, cost.flops(tokens_before, block_size_tokens), size_bytes)

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
