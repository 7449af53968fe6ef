"""DeepSeek-V2 and DeepSeek-V3 (R1 too): latent attention, shared and routed experts, dense first layers."""

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from simcore.models.families.base import Layer, RoutedConfig
from simcore.models.spec import DenseFeedForward, LatentAttention, MixtureOfExperts


class DeepseekV2Config(RoutedConfig):
    """DeepSeek-V2 (arXiv:2405.04434); ``q_lora_rank`` is null in V2-Lite, whose queries are projected directly."""

    model_types: ClassVar[tuple[str, ...]] = ("deepseek_v2",)
    architectures: ClassVar[tuple[str, ...]] = ("DeepseekV2ForCausalLM",)
    router_bias: ClassVar[bool] = False

    q_lora_rank: PositiveInt | None
    kv_lora_rank: PositiveInt
    qk_nope_head_dim: PositiveInt
    qk_rope_head_dim: PositiveInt
    v_head_dim: PositiveInt
    attention_bias: Literal[False] = False
    num_key_value_heads: PositiveInt | None = None
    """As many as query heads, or nothing: they share one latent all the same."""
    head_dim: PositiveInt | None = None
    intermediate_size: PositiveInt
    first_k_dense_replace: NonNegativeInt
    moe_layer_freq: PositiveInt = 1
    moe_intermediate_size: PositiveInt
    n_shared_experts: PositiveInt | None
    n_routed_experts: PositiveInt

    def layer(self, index: int) -> Layer:
        """Latent attention, and a dense block (first layers) or experts."""
        attention = self.latent_attention(index)
        if index < self.first_k_dense_replace or index % self.moe_layer_freq:
            return attention, DenseFeedForward(self.intermediate_size)
        return attention, MixtureOfExperts(
            experts=self.n_routed_experts,
            experts_per_token=self.num_experts_per_tok,
            expert_intermediate_size=self.moe_intermediate_size,
            shared_intermediate_size=(self.n_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=self.router_bias,
        )

    def latent_attention(self, index: int) -> LatentAttention:
        """Attention of the layer ``index``."""
        return LatentAttention(
            query_heads=self.num_attention_heads,
            kv_lora_rank=self.kv_lora_rank,
            q_lora_rank=self.q_lora_rank,
            nope_head_dim=self.qk_nope_head_dim,
            rope_head_dim=self.qk_rope_head_dim,
            value_head_dim=self.v_head_dim,
        )


class DeepseekV3Config(DeepseekV2Config):
    """DeepSeek-V3 (arXiv:2412.19437): V2 with a bias per expert that balances load (``e_score_correction_bias``).

    The multi-token-prediction module (``num_nextn_predict_layers``) is left out: serving works without it, and
    the publisher's 671 billion parameters do not count it either.
    """

    model_types: ClassVar[tuple[str, ...]] = ("deepseek_v3",)
    architectures: ClassVar[tuple[str, ...]] = ("DeepseekV3ForCausalLM",)
    router_bias: ClassVar[bool] = True


class Glm4MoeLiteConfig(DeepseekV3Config):
    """GLM-4.7-Flash: DeepSeek-V3's layers in a smaller size."""

    model_types: ClassVar[tuple[str, ...]] = ("glm4_moe_lite",)
    architectures: ClassVar[tuple[str, ...]] = ("Glm4MoeLiteForCausalLM",)

    first_k_dense_replace: NonNegativeInt = 1
    mlp_layer_types: list[Literal["dense", "sparse"]] | None = None


class SparseLatentConfig(DeepseekV3Config):
    """DeepSeek-V3.2 and GLM-5: a token attends to the ``index_topk`` tokens that an indexer ranks first.

    Layers called "shared" by ``indexer_types`` have no indexer and take what the layer before has chosen (GLM-5.2).
    """

    model_types: ClassVar[tuple[str, ...]] = ("deepseek_v32", "glm_moe_dsa")
    architectures: ClassVar[tuple[str, ...]] = ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")

    q_lora_rank: PositiveInt
    index_topk: PositiveInt
    index_n_heads: PositiveInt
    index_head_dim: PositiveInt
    indexer_types: list[Literal["full", "shared"]] | None = None
    mlp_layer_types: list[Literal["dense", "sparse"]] | None = None
    index_topk_pattern: None = None
    index_topk_freq: PositiveInt = 1
    index_skip_topk_offset: NonNegativeInt = 0
    index_share_for_mtp_iteration: bool = False
    indexer_rope_interleave: bool = False
    layer_types: list[str] | None = None
    num_experts: PositiveInt | None = None

    def latent_attention(self, index: int) -> LatentAttention:
        """Latent attention of few tokens."""
        indexed = self.indexer_types is None or self.indexer_types[index] == "full"
        return replace(
            super().latent_attention(index),
            attended_tokens=self.index_topk,
            index_heads=self.index_n_heads if indexed else 0,
            index_head_dim=self.index_head_dim if indexed else 0,
        )

    def notices(self) -> tuple[str, ...]:
        """How sparse attention is priced."""
        return (
            f"Sparse attention is priced by the roofline: an indexer asks every key, and {self.index_topk:,} tokens "
            f"are attended to. Choosing them is left out.",
        )
