"""Whether a routing policy wants to know of single blocks, and whether replicas can tell."""

from collections.abc import Sequence

from policies.routing import Routing
from simcore.build.pool import PreparedPool
from simcore.build.turns import turns_of
from simcore.core.errors import InputError
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy


def follows_blocks(scenario: Scenario) -> bool:
    """Whether the router is told of blocks; steps are then not taken together, as blocks change in each."""
    routing: Routing = build_policy("routing", scenario.cluster.routing, "cluster.routing")
    return routing.follows_blocks


def check_block_events(scenario: Scenario, pools: Sequence[PreparedPool]) -> None:
    """Raise ``InputError`` where a routing policy follows blocks that replicas do not tell of."""
    if not follows_blocks(scenario):
        return
    if scenario.cluster.assignment is not None:
        name = scenario.cluster.routing["name"]
        raise InputError("cluster.routing.name", name, "one that follows no blocks, as requests are assigned to pools")
    entries = [pool for pool in pools if pool.role != "decode"]
    for pool in entries:
        memory = pool.scenario.memory
        reasons = {
            "there is no prefix cache": not memory.prefix_caching,
            "the prefix cache has no index of hashes": memory.prefix_cache.index != "hash"
            or turns_of(pool.scenario) is not None,
            "tenants have shares of memory": bool(memory.prefix_cache.tenant_shares),
            f"{pool.spec.name} has layers whose windows give blocks back": pool.memory.layout.releases,
            f"{pool.spec.name} has linear attention": pool.spec.has_linear_attention,
        }
        for reason, holds in reasons.items():
            if holds:
                name = scenario.cluster.routing["name"]
                raise InputError("cluster.routing.name", name, f"a policy that follows no blocks, as {reason}")
    if len({(pool.scenario.memory.block_size_tokens, pool.scenario.memory.prefix_cache.salt) for pool in entries}) > 1:
        expected = "one that follows no blocks, as pools differ in memory.block_size_tokens or memory.prefix_cache.salt"
        raise InputError("cluster.routing.name", scenario.cluster.routing["name"], expected)
