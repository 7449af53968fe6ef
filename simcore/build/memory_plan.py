"""The KV memory of a scenario: what its replicas can hold, computed or as given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor

from policies.eviction import Eviction
from simcore.build.adapters import adapter_bytes
from simcore.build.recurrent_state import kept_states
from simcore.build.turns import turns_of
from simcore.core.errors import InputError
from simcore.hardware import Accelerator
from simcore.memory.capacity import MemoryBudget, MemoryDemand
from simcore.memory.kv_bytes import KvFormat, attention_counts
from simcore.memory.kv_groups import KvCacheLayout
from simcore.memory.partitions import divide_blocks
from simcore.memory.reserved import Reservation
from simcore.models import ModelSpec
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.workload.batch import Int64Array


def weight_dtype(scenario: Scenario, spec: ModelSpec) -> str:
    """The number format of the weights, as stated or as published."""
    return spec.dtype if scenario.precision.weights == "auto" else scenario.precision.weights


def kv_format(scenario: Scenario, spec: ModelSpec) -> KvFormat:
    """The number format of the KV cache, as stated, or as the checkpoint states it, or else 16 bits.

    Raises ``InputError`` where scales and dtype do not go together.
    """
    precision = scenario.precision
    dtype = (spec.kv_dtype or "bf16") if precision.kv_cache == "auto" else precision.kv_cache
    return KvFormat.of(dtype, precision.kv_scales, precision.kv_group_size)


def why_windows_stay(scenario: Scenario, layout: KvCacheLayout, shares_content: bool) -> str | None:
    """Why blocks that have left sliding windows are kept, unlike by vLLM's hybrid manager; None if they are not."""
    if turns_of(scenario) is not None:
        return "prompts and decodes take turns over one kind of block"
    if scenario.memory.reservation != "none":
        return "requests reserve memory for their whole context"
    if len({group.block_size_tokens for group in layout.groups}) > 1:
        return "blocks of its kinds of layers hold different numbers of tokens"
    if scenario.cluster.pipeline_parallel > 1:
        return "several batches in flight have each a pool of their own"
    if counts_suffice(scenario, shares_content):
        return None
    if scenario.memory.prefix_cache.index == "radix":
        return "a radix tree keeps all blocks of a prefix (SGLang's other tree, for windows, is not modelled)"
    return "tiers below GPU memory take blocks of all layers" if scenario.memory.tiers else None


def counts_suffice(scenario: Scenario, shares_content: bool) -> bool:
    """Whether it makes no difference which blocks a request has, so that their number is enough.

    That is so without a prefix cache, and with one in order of release if no two requests say the same and no tiers
    keep copies.
    """
    cache = scenario.memory.prefix_cache
    eviction: Eviction = build_policy("eviction", cache.eviction, "memory.prefix_cache.eviction")
    in_order = cache.index == "hash" and eviction.by_release and cache.expires_after_s is None
    plain = in_order and not shares_content and not scenario.memory.tiers
    return not cache.tenant_shares and (plain or not scenario.memory.prefix_caching)


def memory_demand(scenario: Scenario, spec: ModelSpec, shares_content: bool = False) -> MemoryDemand:
    """What the scenario's model and settings ask of an accelerator's memory."""
    memory, batching = scenario.memory, scenario.scheduler.batching
    return MemoryDemand(
        spec,
        weight_dtype(scenario, spec),
        kv_format(scenario, spec),
        memory.block_size_tokens,
        batching.get("max_batched_tokens", spec.max_context_tokens),
        batching.get("max_running_requests", 1),
        memory.gpu_memory_utilization,
        memory.kv_sharing_layers,
        hybrid=True,
        data_parallel_ranks=scenario.cluster.data_parallel,
        expert_ranks=scenario.cluster.expert_parallel,
        context_ranks=scenario.cluster.context_parallel,
        kept_states=kept_states(scenario, spec, shares_content),
        adapter_bytes=adapter_bytes(scenario, spec),
    )


def _check_reservation(scenario: Scenario) -> None:
    """Refuse what reserved memory cannot do; raises ``InputError``."""
    memory, swaps = scenario.memory, scenario.scheduler.preemption.mode == "swap"
    if memory.reservation == "none":
        return
    reasons = {
        "memory.prefix_caching keeps blocks of requests that have ended": memory.prefix_caching,
        "scheduler.preemption.mode is swap, which moves blocks one by one": swaps,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError("memory.reservation", memory.reservation, f"none, since {reason}")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one replica.

    ``budgets`` has one entry per pipeline stage and ``decisive`` is the tightest; ``blocks`` are the KV blocks that the
    engine has, ``null_blocks`` of which hold no request's tokens; ``given`` tells that the scenario states them.
    ``windows_stay`` says why nothing leaves sliding windows, where that is so. ``pinned_blocks`` hold the
    first ``pinned_tokens`` of some prompts for good. ``reservation`` says what requests reserve, if they do;
    ``tenant_shares`` are those of tenants that have blocks of their own. A ``watermark_share`` of the blocks stays free
    when a request is admitted beside others, and so do the ``reserved_blocks`` of levels more urgent than ``level``,
    which is that of the requests that are asked about. Requests that run may grow into both.
    """

    demand: MemoryDemand
    accelerator: Accelerator
    ranks: int
    layout: KvCacheLayout
    budgets: tuple[MemoryBudget, ...]
    decisive: MemoryBudget
    blocks: int
    null_blocks: int
    given: bool
    windows_stay: str | None = None
    pinned_blocks: int = 0
    pinned_tokens: int = 0
    reservation: Reservation | None = None
    tenant_shares: Mapping[str, float] = field(default_factory=dict)
    watermark_share: float = 0.0
    reserved_blocks: Mapping[int, int] = field(default_factory=dict)
    level: int = 0

    @classmethod
    def of(
        cls, scenario: Scenario, spec: ModelSpec, accelerator: Accelerator, shares_content: bool = False
    ) -> "MemoryPlan":
        """The plan of a scenario, whose workload may say what its requests have in common.

        Raises ``CapacityError`` for a model, or for given blocks, that the memory has no room for, ``InputError`` for
        blocks that are all kept aside, for more layers that share a cache than there are, and for a reservation with
        what it does not go with.
        """
        _check_reservation(scenario)
        most_alike, sharing = max(attention_counts(spec).values()), scenario.memory.kv_sharing_layers
        if sharing > most_alike:
            expected = f"at most {most_alike}, the most layers of one kind that {spec.name} has"
            raise InputError("memory.kv_sharing_layers", sharing, expected)
        demand = memory_demand(scenario, spec, shares_content)
        stay = why_windows_stay(scenario, demand.layout(1), shares_content)
        if stay is not None:
            demand = replace(demand, hybrid=False)
        ranks, stages, memory = scenario.cluster.tensor_parallel, scenario.cluster.pipeline_parallel, scenario.memory
        blocks = memory.num_gpu_blocks
        if blocks is None:
            decisive = demand.require_fit(accelerator, ranks, stages)
            if decisive.blocks <= memory.null_blocks:
                expected = f"less than the {decisive.blocks:,} that memory has room for"
                raise InputError("memory.null_blocks", memory.null_blocks, expected)
        elif blocks <= memory.null_blocks:
            expected = f"more than the {memory.null_blocks} that the engine keeps aside"
            raise InputError("memory.num_gpu_blocks", blocks, expected)
        else:
            demand.require_room_for(blocks, accelerator, ranks, stages)
            decisive = demand.budget(accelerator, ranks, stages)
        return cls(
            demand,
            accelerator,
            ranks,
            demand.layout(ranks, stages),
            demand.budgets(accelerator, ranks, stages),
            decisive,
            decisive.blocks if blocks is None else blocks,
            memory.null_blocks,
            blocks is not None,
            stay,
            reservation=None if memory.reservation == "none" else memory.reservation,
            tenant_shares=memory.prefix_cache.tenant_shares,
            watermark_share=memory.watermark_share,
            reserved_blocks=scenario.scheduler.preemption.reserved_blocks,
        )

    @property
    def request_blocks(self) -> int:
        """KV blocks that requests can hold, those of all data-parallel and context ranks together."""
        return (self.blocks - self.null_blocks) * self.copies

    @property
    def group_blocks(self) -> int:
        """KV blocks that any one request can hold: it stays on its data-parallel rank."""
        return self.request_blocks // self.demand.data_parallel_ranks

    @property
    def replica_weight_bytes(self) -> int:
        """Weights of all accelerators of a replica."""
        return sum(budget.weight_bytes for budget in self.budgets) * self.ranks * self.copies

    @property
    def watermark_blocks(self) -> int:
        """KV blocks that must stay free when a request is admitted beside others."""
        return self._watermark_of(self.request_blocks)

    @property
    def kept_blocks(self) -> int:
        """KV blocks that requests of this level cannot be admitted into, as they are reserved for more urgent ones."""
        return sum(blocks for level, blocks in self.reserved_blocks.items() if level < self.level)

    @property
    def copies(self) -> int:
        """How many ranks with the same weights have blocks of their own."""
        return self.demand.data_parallel_ranks * self.demand.context_ranks

    @property
    def releasing_layout(self) -> KvCacheLayout:
        """The groups of an engine that releases what sliding windows have left."""
        return replace(self.demand, hybrid=True).layout(self.ranks, len(self.budgets))

    def releasing_blocks(self) -> int:
        """KV blocks for requests of such an engine in the same memory: its blocks may be smaller."""
        stage = self.decisive.stage
        own, releasing = self.layout.block_bytes[stage], self.releasing_layout.block_bytes[stage]
        return (self.blocks * own // releasing - self.null_blocks) * self.copies

    def requests_that_fit(self, tokens: int, releasing: bool = False) -> float:
        """How many requests of ``tokens`` tokens can be admitted side by side, with or without release of windows.

        Pinned blocks are none of theirs; of several parts of the memory each is taken to have as many. The watermark is
        one of all blocks, but each part must have so many free.
        """
        if releasing:
            blocks = self.releasing_blocks()
            return self._fit([blocks], self.releasing_layout.blocks_held(tokens), self._watermark_of(blocks))
        held = self.layout.blocks_held(tokens)
        parts = self._parts_for(held)
        return self._fit([part - self.pinned_blocks / len(parts) for part in parts], held, self.watermark_blocks)

    @property
    def tenant_blocks(self) -> tuple[dict[str, int], int]:
        """KV blocks of tenants with a share of their own, and those of all others."""
        return divide_blocks(self.request_blocks, self.tenant_shares)

    def _watermark_of(self, blocks: int) -> int:
        return floor(blocks * self.watermark_share)

    def _fit(self, parts: Sequence[float], held: int, watermark: int) -> float:
        """How many that hold so many blocks each are admitted; the first, beside nobody, whatever the watermark."""
        rooms = [max(part - self.kept_blocks, 0) for part in parts]
        beside_others = sum(room - watermark for room in rooms if room - watermark >= held)
        first_alone = max((min(room, held) for room in rooms if room - watermark < held), default=0)
        return (beside_others + first_alone) / held

    def _parts_for(self, blocks: int) -> tuple[int, ...]:
        """The blocks of each part of the memory that takes a request of so many; a request lies in one part."""
        named, others = self.tenant_blocks
        if not named and self.demand.data_parallel_ranks == 1:
            return (self.request_blocks,)
        if blocks > self.group_blocks:
            return ()
        return tuple(part for part in (*named.values(), others) if part - self.kept_blocks >= blocks)

    def requests_beside(self, budget: MemoryBudget, tokens: int) -> float:
        """How many of ``tokens`` tokens would with the blocks of another budget, the same of them pinned."""
        return replace(self, blocks=budget.blocks).requests_that_fit(tokens)

    def requests_that_fit_pins(self, tokens: int) -> float:
        """How many of ``tokens`` tokens are admitted if all of them begin with ``pinned_tokens`` pinned ones.

        The last token is computed anew; sliding groups are taken to find nothing.
        """
        full = [group for group in self.layout.groups if group.window_tokens is None]
        found = sum(min(self.pinned_tokens, tokens - 1) // group.block_size_tokens for group in full)
        held = self.layout.blocks_held(tokens) - found
        return self._fit([self.request_blocks - self.pinned_blocks], held, self.watermark_blocks)

    def notices(self, tokens: Int64Array) -> tuple[str, ...]:
        """What a user must know of this capacity, for requests of ``tokens`` tokens.

        Where sliding windows count in the price of a step but release no blocks, a long request is taken to hold more
        of them than it would in the engine.
        """
        of_model = self.demand.spec.notices
        if self.demand.hybrid or not len(tokens) or not self.releasing_layout.releases:
            return of_model
        typical = round(tokens.mean())
        kept = self.request_blocks / self.layout.blocks_held(typical)
        factor = self.releasing_blocks() / self.releasing_layout.blocks_held(typical) / kept
        understated = "understated" if factor >= 1 else "overstated"
        by = f"by a factor of {max(factor, 1 / factor):.2f}" if abs(factor - 1) >= 0.005 else "but by less than 0.5%"
        notice = (
            f"KV capacity is {understated} {by} at the mean request of {typical:,} tokens: blocks that have left a "
            f"window of {self.demand.spec.name} are not released, and layers are not grouped as in the engine, since "
            f"{self.windows_stay}."
        )
        if self.given:
            notice += " memory.num_gpu_blocks counts blocks of all layers, an engine's log blocks of one group of them."
        return (*of_model, notice)
