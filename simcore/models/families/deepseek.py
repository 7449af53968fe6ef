"""DeepSeek-V2 and DeepSeek-V3 (R1 too): latent attention, shared and routed experts, dense first layers."""

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
    intermediate_size: PositiveInt
    first_k_dense_replace: NonNegativeInt
    moe_layer_freq: PositiveInt = 1
    moe_intermediate_size: PositiveInt
    n_shared_experts: PositiveInt | None
    n_routed_experts: PositiveInt

    def layer(self, index: int) -> Layer:
        """Latent attention, and a dense block (first layers) or a mixture of experts."""
        attention = LatentAttention(
            query_heads=self.num_attention_heads,
            kv_lora_rank=self.kv_lora_rank,
            q_lora_rank=self.q_lora_rank,
            nope_head_dim=self.qk_nope_head_dim,
            rope_head_dim=self.qk_rope_head_dim,
            value_head_dim=self.v_head_dim,
        )
        if index < self.first_k_dense_replace or index % self.moe_layer_freq:
            return attention, DenseFeedForward(self.intermediate_size)
        return attention, MixtureOfExperts(
            experts=self.n_routed_experts,
            experts_per_token=self.num_experts_per_tok,
            expert_intermediate_size=self.moe_intermediate_size,
            shared_intermediate_size=(self.n_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=self.router_bias,
        )


class DeepseekV3Config(DeepseekV2Config):
    """DeepSeek-V3 (arXiv:2412.19437): V2 with a bias per expert that balances load (``e_score_correction_bias``).

    The multi-token-prediction module (``num_nextn_predict_layers``) is left out: serving works without it, and
    the publisher's 671 billion parameters do not count it either.
    """

    model_types: ClassVar[tuple[str, ...]] = ("deepseek_v3",)
    architectures: ClassVar[tuple[str, ...]] = ("DeepseekV3ForCausalLM",)
    router_bias: ClassVar[bool] = True
