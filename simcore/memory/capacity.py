"""How many KV blocks a replica has, counted as an engine counts them when it starts."""

from dataclasses import dataclass

from simcore.cost.operators import ACTIVATION_BYTES, heads_per_rank
from simcore.errors import CapacityError
from simcore.hardware import Accelerator, accelerator_names, load_accelerator
from simcore.models import (
    KV_ELEMENT_BYTES,
    Attention,
    DenseFeedForward,
    LatentAttention,
    MixtureOfExperts,
    ModelSpec,
    weight_bytes,
)

RUNTIME_OVERHEAD_BYTES = round(0.6 * 2**30)
"""Context, libraries and captured graphs of one process: what engine logs show beside weights and activations,
between 0.4 and 0.9 GiB."""
COLLECTIVE_BUFFER_BYTES = 342 * 2**20
"""Buffers of the collective library with two and more ranks (as aiconfigurator states for the H100 SXM)."""
LOGIT_COPY_BYTES = 2 + 4 + 4
"""Per logit while sampling: the head's 16-bit output, its 32-bit copy, and the probabilities."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory of one accelerator, in bytes, and the KV blocks that fit into what is left."""

    device_bytes: int
    utilization: float
    weight_bytes: int
    activation_bytes: int
    overhead_bytes: int
    block_bytes: int

    @property
    def kv_bytes(self) -> int:
        """What is left for KV blocks; negative if the model does not fit."""
        usable = int(self.device_bytes * self.utilization)
        return usable - self.weight_bytes - self.activation_bytes - self.overhead_bytes

    @property
    def blocks(self) -> int:
        """Whole KV blocks that fit, 0 if none does."""
        return max(0, self.kv_bytes) // self.block_bytes


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """What a model asks of each accelerator, whichever it is."""

    spec: ModelSpec
    weight_dtype: str
    kv_dtype: str
    block_size_tokens: int
    max_batched_tokens: int
    max_running_requests: int
    utilization: float

    def budget(self, accelerator: Accelerator, ranks: int) -> MemoryBudget:
        """The budget of one of ``ranks`` tensor-parallel accelerators."""
        return MemoryBudget(
            accelerator.memory_bytes,
            self.utilization,
            -(-weight_bytes(self.spec, self.weight_dtype) // ranks),
            self._activation_bytes(ranks),
            RUNTIME_OVERHEAD_BYTES + (COLLECTIVE_BUFFER_BYTES if ranks > 1 else 0),
            self.block_size_tokens * self._kv_bytes_per_token(ranks),
        )

    def require_fit(self, accelerator: Accelerator, ranks: int) -> MemoryBudget:
        """The budget, or a ``CapacityError`` that says what is missing and what would do."""
        budget = self.budget(accelerator, ranks)
        if budget.blocks:
            return budget
        needed = budget.weight_bytes + budget.activation_bytes + budget.overhead_bytes + budget.block_bytes
        raise CapacityError(
            f"{self.spec.name} does not fit: each of {ranks} {accelerator.name} needs {needed / 1e9:.1f} GB "
            f"({budget.weight_bytes / 1e9:.1f} GB of them weights in {self.weight_dtype}) and may use "
            f"{budget.device_bytes * budget.utilization / 1e9:.1f} GB; {self._what_would_fit(accelerator, ranks)}."
        )

    def _what_would_fit(self, accelerator: Accelerator, ranks: int) -> str:
        offers = []
        for more in (2, 4, 8, 16, 32, 64):
            if ranks < more <= accelerator.interconnect_domain and self.budget(accelerator, more).blocks:
                offers.append(f"cluster.tensor_parallel {more}")
                break
        others = [load_accelerator(name) for name in accelerator_names()]
        fitting = [
            other.name
            for other in sorted(others, key=lambda other: (other.memory_bytes, other.name))
            if other.name != "cpu-generic" and ranks <= other.interconnect_domain and self.budget(other, ranks).blocks
        ]
        if fitting:
            offers.append(f"{ranks} of {', '.join(fitting[:3])}")
        return f"{' or '.join(offers)} would do" if offers else "no known accelerator would do"

    def _kv_bytes_per_token(self, ranks: int) -> int:
        elements = 0
        for group in self.spec.layer_groups:
            attention = group.attention
            if isinstance(attention, LatentAttention):
                elements += group.count * attention.kv_elements_per_token
            else:
                heads = heads_per_rank(attention.kv_heads, ranks)
                elements += group.count * heads * (attention.head_dim + attention.value_head_dim)
        return elements * KV_ELEMENT_BYTES[self.kv_dtype]

    def _activation_bytes(self, ranks: int) -> int:
        """The largest live set of a full step: hidden states and residual, the widest block, the logits."""
        hidden = self.spec.hidden_size
        widest = max(_block_width(group.feed_forward, group.attention, ranks) for group in self.spec.layer_groups)
        layer = self.max_batched_tokens * (2 * hidden + widest) * ACTIVATION_BYTES
        logits = self.max_running_requests * self.spec.vocabulary_size * LOGIT_COPY_BYTES
        return round(layer + logits)


def _block_width(block: DenseFeedForward | MixtureOfExperts, attention: Attention | LatentAttention, ranks: int) -> int:
    """Elements per token alive inside a layer's widest block on one rank."""
    matrices = 3 if block.gated else 2
    if isinstance(block, DenseFeedForward):
        feed_forward = matrices * -(-block.intermediate_size // ranks)
    else:
        routed = block.experts_per_token * matrices * -(-block.expert_intermediate_size // ranks)
        feed_forward = routed + matrices * -(-block.shared_intermediate_size // ranks)
    query = heads_per_rank(attention.query_heads, ranks) * 2 * attention.value_head_dim
    return max(feed_forward, query)
