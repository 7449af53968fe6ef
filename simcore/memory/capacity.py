"""How many KV blocks a replica has, counted as an engine counts them when it starts."""

from dataclasses import dataclass

from simcore.core.errors import CapacityError
from simcore.hardware import Accelerator, accelerator_names, load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.memory.kv_groups import KvCacheLayout, kv_cache_layout, pipeline_stages
from simcore.memory.recurrent_state import request_state_bytes
from simcore.models import (
    CachedAttention,
    DenseFeedForward,
    FeedForward,
    ModelSpec,
    Recurrent,
    heads_per_rank,
    rank_weight_bytes,
)
from simcore.models.weight_formats import ACTIVATION_BYTES

RUNTIME_OVERHEAD_BYTES = round(0.6 * 2**30)
"""Context, libraries and captured graphs of one process: what engine logs show beside weights and activations,
between 0.4 and 0.9 GiB."""
COLLECTIVE_BUFFER_BYTES = 342 * 2**20
"""Buffers of the collective library with two and more ranks (as aiconfigurator states for the H100 SXM)."""
LOGIT_COPY_BYTES = 2 + 4 + 4
"""Per logit while sampling: the head's 16-bit output, its 32-bit copy, and the probabilities."""
DEVICES_PER_HOST = 8
"""Accelerators that share a host, over PCIe where they have no links of their own."""
_MOST_OFFERS = 3
_NEVER_OFFERED = ("cpu-generic",)


def tensor_parallel_reach(accelerator: Accelerator) -> int:
    """How many accelerators can work as one: those that scale-up links join, or those of one host."""
    return max(accelerator.interconnect_domain, DEVICES_PER_HOST)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory of one accelerator of a pipeline stage, in bytes, and the KV blocks that fit into what is left.

    ``runtime_bytes`` are those of the process (see RUNTIME_OVERHEAD_BYTES), ``collective_bytes`` the buffers that ranks
    talk through; ``state_bytes`` are kept for the states of linear attention that as many requests have as may run, and
    for those that are kept for others;
    ``block_bytes`` is this accelerator's part of a block, 0 if none of its layers has a cache.
    """

    stage: int
    device_bytes: int
    utilization: float
    weight_bytes: int
    activation_bytes: int
    runtime_bytes: int
    collective_bytes: int
    block_bytes: int
    state_bytes: int = 0

    @property
    def usable_bytes(self) -> int:
        """What the engine may take of the device."""
        return int(self.device_bytes * self.utilization)

    @property
    def overhead_bytes(self) -> int:
        """Beside weights, activations and KV: the process and the ranks' buffers."""
        return self.runtime_bytes + self.collective_bytes

    @property
    def kv_bytes(self) -> int:
        """What is left for KV blocks; negative if the model does not fit."""
        taken = self.weight_bytes + self.activation_bytes + self.overhead_bytes + self.state_bytes
        return self.usable_bytes - taken

    @property
    def blocks(self) -> int:
        """Whole KV blocks that fit, 0 if none does; only of a stage whose layers have caches."""
        return max(0, self.kv_bytes) // self.block_bytes


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """What a model asks of each accelerator, whichever it is.

    With ``hybrid``, layers that slide have block tables of their own (see ``simcore.memory.kv_groups``); without, a
    block holds its tokens for all layers. Of ``sharing_layers`` layers alike in succession one has a KV cache.
    Tensor-parallel ranks of all ``data_parallel_ranks`` hold the experts, dealt out to ``expert_ranks``. Each of
    ``context_ranks`` has a part of every request. ``kept_states`` are those of prefixes, beside those of requests.
    ``adapter_bytes`` are of adapters on each rank; they count as weights.
    """

    spec: ModelSpec
    weight_dtype: str
    kv_format: KvFormat
    block_size_tokens: int
    max_batched_tokens: int
    max_running_requests: int
    utilization: float
    sharing_layers: int = 1
    hybrid: bool = False
    data_parallel_ranks: int = 1
    expert_ranks: int = 1
    context_ranks: int = 1
    kept_states: int = 0
    adapter_bytes: int = 0

    def layout(self, ranks: int, stages: int = 1) -> KvCacheLayout:
        """The KV cache groups, and the bytes of a block on a rank of each pipeline stage."""
        return kv_cache_layout(
            self.spec, self.kv_format, self.block_size_tokens, ranks, stages, self.sharing_layers, self.hybrid
        )

    def budgets(self, accelerator: Accelerator, ranks: int, stages: int = 1) -> tuple[MemoryBudget, ...]:
        """The budget of one of the ``ranks`` tensor-parallel accelerators of each of ``stages`` pipeline stages."""
        layout, groups = self.layout(ranks, stages), self.data_parallel_ranks
        states = -(-(self.max_running_requests + self.kept_states) // groups)
        experts = groups, min(self.expert_ranks, ranks * groups)
        return tuple(
            MemoryBudget(
                stage,
                accelerator.memory_bytes,
                self.utilization,
                rank_weight_bytes(self.spec, self.weight_dtype, ranks, layers, *experts) + self.adapter_bytes,
                self._activation_bytes(ranks, layers),
                RUNTIME_OVERHEAD_BYTES,
                COLLECTIVE_BUFFER_BYTES if ranks * stages * groups * self.context_ranks > 1 else 0,
                layout.block_bytes[stage],
                states * request_state_bytes(self.spec, ranks, layers),
            )
            for stage, layers in enumerate(pipeline_stages(self.spec.layers, stages))
        )

    def budget(self, accelerator: Accelerator, ranks: int, stages: int = 1) -> MemoryBudget:
        """The budget that decides: every block takes its part on all stages, so the one with the fewest."""
        with_caches = (budget for budget in self.budgets(accelerator, ranks, stages) if budget.block_bytes)
        return min(with_caches, key=lambda budget: budget.blocks)

    def require_room_for(self, blocks: int, accelerator: Accelerator, ranks: int, stages: int = 1) -> None:
        """Raise ``CapacityError`` if weights and so many KV blocks are more than all memory of an accelerator."""
        for budget in self.budgets(accelerator, ranks, stages):
            needed = budget.weight_bytes + budget.state_bytes + blocks * budget.block_bytes
            if needed > budget.device_bytes:
                beside = f"{budget.weight_bytes / 1e9:.1f} GB of weights"
                if budget.state_bytes:
                    beside += f" and {self._states(budget)}"
                raise CapacityError(
                    f"memory.num_gpu_blocks is {blocks}, which with {beside} needs {needed / 1e9:.1f} GB of each "
                    f"{accelerator.name}, expected no more than its {budget.device_bytes / 1e9:.1f} GB."
                )

    def require_fit(self, accelerator: Accelerator, ranks: int, stages: int = 1) -> MemoryBudget:
        """The budget, or a ``CapacityError`` that says what is missing and what would do."""
        short = self._short(accelerator, ranks, stages)
        if not short:
            return self.budget(accelerator, ranks, stages)
        budget = short[0]
        needed = budget.usable_bytes - budget.kv_bytes + budget.block_bytes
        parts = f"{budget.weight_bytes / 1e9:.1f} GB for weights in {self.weight_dtype}, "
        parts += f"{budget.activation_bytes / 1e9:.1f} GB for activations"
        if budget.state_bytes:
            parts += f", {self._states(budget)}"
        slots = min(map(self._slots_that_fit, short))
        if slots:
            parts += f", of which {slots:,} would do (scheduler.batching.max_running_requests)"
        devices = ranks * stages * self.data_parallel_ranks * self.context_ranks
        raise CapacityError(
            f"{self.spec.name} does not fit {devices} {accelerator.name}: {'it' if devices == 1 else 'each'} needs "
            f"{needed / 1e9:.1f} GB ({parts}) and may use {budget.device_bytes * budget.utilization / 1e9:.1f} GB "
            f"({budget.utilization:.0%} of its memory); {self._what_would_fit(accelerator, ranks, stages)}."
        )

    def _short(self, accelerator: Accelerator, ranks: int, stages: int) -> list[MemoryBudget]:
        """The stages whose accelerators have no room for a block, or for what is there beside blocks."""
        return [budget for budget in self.budgets(accelerator, ranks, stages) if budget.kv_bytes < budget.block_bytes]

    def _states(self, budget: MemoryBudget) -> str:
        own = -(-self.max_running_requests // self.data_parallel_ranks)
        of_all = "" if self.data_parallel_ranks == 1 else f" of {self.max_running_requests:,}"
        kept = f" and {self.kept_states:,} prefixes (memory.prefix_cache.kept_states)" if self.kept_states else ""
        return f"{budget.state_bytes / 1e9:.1f} GB for states of {own:,}{of_all} running requests{kept}"

    def _slots_that_fit(self, budget: MemoryBudget) -> int:
        """Running requests for whose states there is memory beside all else and a block; 0 where that helps nothing."""
        if not budget.state_bytes:
            return 0
        ranks = self.data_parallel_ranks
        states = -(-(self.max_running_requests + self.kept_states) // ranks)
        room = budget.kv_bytes + budget.state_bytes - budget.block_bytes
        return max(room * states // budget.state_bytes * ranks - self.kept_states, 0)

    def _what_would_fit(self, accelerator: Accelerator, ranks: int, stages: int) -> str:
        """More of the same, as many of another, or else the fewest of another; the smallest that do."""
        others = sorted(map(load_accelerator, accelerator_names()), key=lambda other: (other.memory_bytes, other.name))
        fewest = {other.name: self._fewest_ranks(other, stages) for other in others if other.name not in _NEVER_OFFERED}
        offers = []
        more = self._fewest_ranks(accelerator, stages)
        if more is not None and more > ranks and accelerator.name not in _NEVER_OFFERED:
            offers.append(f"{more * stages} {accelerator.name} (cluster.tensor_parallel: {more})")
        enough = [name for name, count in fewest.items() if count is not None and count <= ranks]
        if enough:
            offers += [f"{ranks * stages} {name}" for name in enough[:_MOST_OFFERS]]
        elif not offers:
            known = sorted((count, name) for name, count in fewest.items() if count is not None)
            offers += [f"{count * stages} {name}" for count, name in known[:_MOST_OFFERS]]
        if not offers:
            return "no known accelerator has enough"
        *first, last = offers
        return f"{', '.join(first)} or {last} would do" if first else f"{last} would do"

    def _fewest_ranks(self, accelerator: Accelerator, stages: int) -> int | None:
        """The smallest power of two of ``accelerator`` that holds a stage, None if none within reach does."""
        ranks = 1
        while ranks <= tensor_parallel_reach(accelerator) and self.spec.common_heads % ranks == 0:
            if not self._short(accelerator, ranks, stages):
                return ranks
            ranks *= 2
        return None

    def _activation_bytes(self, ranks: int, layers: range) -> int:
        """The largest live set of a full step: hidden states and residual, the widest block, the logits at the end.

        A context rank computes its part of every prompt and all that decode. Data groups share what is sampled and the
        tokens of experts, but one of them may have all of a prompt.
        """
        hidden, slots = self.spec.hidden_size, self.max_running_requests
        decoding = min(slots, self.max_batched_tokens)
        tokens = decoding + -(-(self.max_batched_tokens - decoding) // self.context_ranks)
        groups = self.spec.of_layers(layers)
        widest = max(
            _block_width(group.feed_forward, group.attention, ranks, self.data_parallel_ranks) for group in groups
        )
        layer = tokens * (2 * hidden + widest) * ACTIVATION_BYTES
        last = layers.stop == self.spec.layers
        sampled = -(-slots // self.data_parallel_ranks) if last else 0
        return round(layer + sampled * self.spec.vocabulary_size * LOGIT_COPY_BYTES)


def _block_width(
    block: FeedForward | None,
    attention: CachedAttention | Recurrent | None,
    ranks: int,
    data_parallel_ranks: int,
) -> int:
    """Elements per token alive inside a layer's widest block on one rank."""
    matrices = 3 if block is None or block.gated else 2
    if block is None:
        feed_forward = 0
    elif isinstance(block, DenseFeedForward):
        feed_forward = matrices * -(-block.intermediate_size // ranks)
    else:
        routed = (
            block.experts_per_token * matrices * -(-block.expert_intermediate_size // (ranks * data_parallel_ranks))
        )
        feed_forward = routed + matrices * -(-block.shared_intermediate_size // ranks)
    if attention is None:
        return feed_forward
    if isinstance(attention, Recurrent):
        projected = attention.projected + attention.value_heads * attention.value_head_dim
        return max(feed_forward, -(-projected // ranks))
    query = heads_per_rank(attention.query_heads, ranks) * 2 * attention.value_head_dim
    return max(feed_forward, query)
