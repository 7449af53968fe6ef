"""What lies below the GPU memory of one replica, and the links to it, from their sections of a scenario."""

from simcore.build.memory_plan import MemoryPlan
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_ns
from simcore.core.decode_pool import DecodePool
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.cost.step_cost import StepCost
from simcore.memory.link import Link
from simcore.memory.swap import SwapSpace
from simcore.memory.tier import Tier
from simcore.memory.tiers import TierChain, Timer
from simcore.scenario import Scenario
from simcore.scenario.sections import HostLink, StorageTier
from simcore.scheduling.loading import RecomputeTime
from simcore.scheduling.offloading import Offloading
from simcore.scheduling.swapping import Swapping

_BYTES_PER_GB = 1e9


def build_offloading(scenario: Scenario, plan: MemoryPlan, clock: Timer) -> Offloading:
    """From a scenario; raises ``InputError`` for a capacity that holds not even one block.

    Each tensor-parallel rank keeps its own part of a block, or its copy where there are fewer heads than ranks.
    """
    section = scenario.memory
    block_bytes = plan.ranks * sum(plan.layout.block_bytes)
    swaps = scenario.scheduler.preemption.mode == "swap"
    if not section.tiers and not swaps:
        return Offloading(block_bytes)
    to_gpu, from_gpu = _host_links(section.host_link, plan)
    links, tiers = [to_gpu, from_gpu], []
    for place, tier in enumerate(section.tiers):
        read = write = None
        if isinstance(tier, StorageTier):
            latency_ns = to_ns(tier.latency_s)
            read = Link(f"{tier.name} to CPU", tier.read_gb_per_s * _BYTES_PER_GB, latency_ns)
            write = Link(f"CPU to {tier.name}", tier.write_gb_per_s * _BYTES_PER_GB, latency_ns)
            links += [read, write]
        blocks = _blocks(f"memory.tiers.{place}.capacity_gb", tier.capacity_gb, block_bytes)
        tiers.append(Tier(tier.name, blocks, read, write))
    chain = swapping = None
    if tiers:
        chain = TierChain(tiers, to_gpu, from_gpu, block_bytes, clock, section.prefetch_from_tiers)
    if swaps:
        blocks = _blocks("memory.swap_space_gb", section.swap_space_gb, block_bytes)
        swapping = Swapping(SwapSpace(blocks, block_bytes, to_gpu, from_gpu))
    return Offloading(block_bytes, tuple(links), chain, swapping)


def recompute_time(cost: StepCost, block_size_tokens: int) -> RecomputeTime:
    """How much longer a step of one request alone is if it also computes what could be loaded, by its price."""
    pool = DecodePool(block_size_tokens)

    def alone_ns(computed_tokens: int, tokens: int) -> int:
        plan = BatchPlan()
        plan.add_chunk(Request(-1, 0, computed_tokens + tokens, computed_tokens=computed_tokens), tokens)
        return cost.step_ns(plan, pool, sampled_rows=1)

    def recompute_ns(cached_tokens: int, loadable_tokens: int, other_tokens: int) -> int:
        with_all = alone_ns(cached_tokens, loadable_tokens + other_tokens)
        return with_all - alone_ns(cached_tokens + loadable_tokens, other_tokens)

    return recompute_ns


def _host_links(section: HostLink, plan: MemoryPlan) -> tuple[Link, Link]:
    """To the GPU and from it: the links of all accelerators of a replica, which move their parts at once, as one."""
    raw = plan.accelerator.pcie_bytes_per_s
    given = (section.to_gpu_gb_per_s, section.from_gpu_gb_per_s)
    to_gpu, from_gpu = (plan.ranks * (raw if rate is None else rate * _BYTES_PER_GB) for rate in given)
    latency_ns = to_ns(section.latency_s)
    return Link("CPU to GPU", to_gpu, latency_ns), Link("GPU to CPU", from_gpu, latency_ns)


def _blocks(field: str, capacity_gb: float, block_bytes: int) -> int:
    blocks = int(capacity_gb * _BYTES_PER_GB) // block_bytes
    if not blocks:
        raise InputError(field, capacity_gb, f"at least the {block_bytes / _BYTES_PER_GB:.3g} of one KV block")
    return blocks
