"""What a cost model and a memory planner need to know of a transformer, and nothing more."""

from collections import Counter
from dataclasses import dataclass, replace
from math import gcd

from simcore.models.recurrent import Recurrent
from simcore.models.weight_formats import Role


@dataclass(frozen=True, slots=True)
class Attention:
    """Multi-head, multi-query or grouped-query attention of one layer.

    ``head_dim`` is the width of a query and key head, ``value_head_dim`` of a value head. ``window_tokens`` is
    the sliding window, None when a token sees its whole past. ``query_key_norm`` tells of norms on queries and keys,
    ``norm_across_heads`` that each is over all heads together, so that tensor-parallel ranks must sum it. ``rotary``
    tells that queries and keys are rotated by their positions, be it in part. With ``output_gate`` what a query head
    found is multiplied by a gate as wide, which is projected beside the queries (Qwen3-Next). With ``keys_as_values``
    one projection makes both, which the cache holds apart all the same (Gemma 4).
    """

    query_heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    window_tokens: int | None = None
    projection_bias: bool = False
    output_bias: bool = False
    query_key_norm: bool = False
    norm_across_heads: bool = False
    sinks: bool = False
    rotary: bool = True
    output_gate: bool = False
    keys_as_values: bool = False

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers that one token leaves in the KV cache of one layer."""
        return self.kv_heads * (self.head_dim + self.value_head_dim)


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    The cache holds one latent of ``kv_lora_rank`` and one rotary key of ``rope_head_dim`` per token, shared by all
    heads. ``q_lora_rank`` is None where queries are projected directly (DeepSeek-V2-Lite).

    With ``attended_tokens`` a token attends to as many of its past alone, those that an indexer of ``index_heads``
    ranks first by keys of its own, ``index_head_dim`` wide (DeepSeek-V3.2); a layer without index heads takes those of
    the layer before (GLM-5.2).
    """

    query_heads: int
    kv_lora_rank: int
    q_lora_rank: int | None
    nope_head_dim: int
    rope_head_dim: int
    value_head_dim: int
    window_tokens: int | None = None
    attended_tokens: int | None = None
    index_heads: int = 0
    index_head_dim: int = 0

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers that one token leaves in the KV cache of one layer, but for the indexer's key."""
        return self.kv_lora_rank + self.rope_head_dim


@dataclass(frozen=True, slots=True)
class DenseFeedForward:
    """A feed-forward block with one set of weights; ``gated`` has three matrices (SwiGLU, GeGLU), else two."""

    intermediate_size: int
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, slots=True)
class MixtureOfExperts:
    """A routed feed-forward block: each token runs through ``experts_per_token`` of ``experts``.

    ``shared_intermediate_size`` is the total width of the experts that every token runs through (0: none), whose result
    is multiplied by a number of the token's own with ``shared_gate`` (Qwen3-Next);
    ``bias`` tells of the experts, ``router_bias`` of one number per expert added to the router's scores,
    ``router_dtype`` of what engines compute the router in. With ``latent_size`` routed experts read a projection that
    narrow, and what they make is projected back (Nemotron 3 Super).
    """

    experts: int
    experts_per_token: int
    expert_intermediate_size: int
    shared_intermediate_size: int = 0
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    router_dtype: str = "bf16"
    shared_gate: bool = False
    latent_size: int | None = None


CachedAttention = Attention | LatentAttention
"""Attention whose tokens leave something in the KV cache."""
FeedForward = DenseFeedForward | MixtureOfExperts


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """``count`` layers alike in everything but their place; a layer of some hybrids has one of its two blocks alone.

    Matrices of the roles ``kept`` are in 16 bits in the checkpoint, though its format is for them.
    """

    count: int
    attention: CachedAttention | Recurrent | None
    feed_forward: FeedForward | None
    kept: frozenset[Role] = frozenset()

    @property
    def blocks(self) -> int:
        """How many of the two blocks the layers have."""
        return (self.attention is not None) + (self.feed_forward is not None)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A decoder-only transformer, as its published configuration states it.

    ``dtype`` names the numbers its weights were published in: one of ``weight_formats.WEIGHT_FORMATS``;
    ``norms_per_layer`` counts normalisations over the hidden size (2 in most, 4 in Gemma), ``final_norm`` tells whether
    one more follows the last layer; ``norm_bias`` tells LayerNorm (weight and bias) from RMSNorm;
    ``learned_positions`` is the row count of a learned position table (0 without one).
    ``embedding_size`` is the width of the token embedding and head where it differs from the hidden size (opt-350m
    alone): one projection leads in, another out. Vision towers and multi-token-prediction modules are no part of it.
    ``layer_order`` is the position in ``layer_groups`` of each layer's group, from the first layer to the last; where
    it is empty the groups follow each other as they stand. With ``parallel_blocks`` the MLP reads what attention reads,
    and both results are summed in one. ``kv_dtype`` is the number format that the checkpoint states for the KV cache,
    ``notices`` are what a user must know of how the model was read.
    """

    name: str
    family: str
    hidden_size: int
    layer_groups: tuple[LayerGroup, ...]
    vocabulary_size: int
    max_context_tokens: int
    tied_embeddings: bool
    dtype: str
    norms_per_layer: int = 2
    norm_bias: bool = False
    learned_positions: int = 0
    final_norm: bool = True
    embedding_size: int | None = None
    layer_order: tuple[int, ...] = ()
    parallel_blocks: bool = False
    kv_dtype: str | None = None
    notices: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """Number of transformer layers."""
        return sum(group.count for group in self.layer_groups)

    @property
    def common_heads(self) -> int:
        """What tensor-parallel ranks must divide so that each has whole heads in every layer."""
        return gcd(*(group.attention.query_heads for group in self.layer_groups if group.attention is not None))

    @property
    def has_linear_attention(self) -> bool:
        """Whether requests have states in some layers instead of keys and values."""
        return any(isinstance(group.attention, Recurrent) for group in self.layer_groups)

    def of_layers(self, layers: range) -> tuple[LayerGroup, ...]:
        """The layer groups of a part of the model: those layers, counted from 0, that a pipeline stage holds."""
        if len(layers) == self.layers:
            return self.layer_groups
        order = self.layer_order or [place for place, group in enumerate(self.layer_groups) for _ in range(group.count)]
        counts = Counter(order[layers.start : layers.stop])
        return tuple(replace(self.layer_groups[place], count=count) for place, count in sorted(counts.items()))

    def stage(self, layers: range) -> "ModelSpec":
        """The layers of a pipeline stage as a model of their own, but for weights outside of layers."""
        return replace(self, layer_groups=self.of_layers(layers), layer_order=())

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers that one token leaves in the KV cache, all layers together (windows not yet released)."""
        return sum(
            group.count * group.attention.kv_elements_per_token
            for group in self.layer_groups
            if group.attention is not None
        )


def heads_per_rank(heads: int, ranks: int) -> int:
    """Attention heads on the fullest of ``ranks`` tensor-parallel ranks; fewer heads than ranks are replicated."""
    return -(-heads // ranks)
