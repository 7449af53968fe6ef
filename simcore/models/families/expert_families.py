"""Families with routed experts beside grouped-query attention, each with keys and traits of its own."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, LayerCount, RoutedConfig
from simcore.models.spec import DenseFeedForward, MixtureOfExperts


class Qwen2MoeConfig(RoutedConfig, GroupedQueryConfig):
    """Qwen1.5-MoE and Qwen2-MoE: an expert that every token runs through, behind a gate."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen2_moe",)
    architectures: ClassVar[tuple[str, ...]] = ("Qwen2MoeForCausalLM",)

    intermediate_size: PositiveInt
    num_experts: PositiveInt
    moe_intermediate_size: PositiveInt
    shared_expert_intermediate_size: PositiveInt
    decoder_sparse_step: PositiveInt = 1
    mlp_only_layers: list[NonNegativeInt] = Field(default_factory=list)
    qkv_bias: bool = True
    use_sliding_window: Literal[False] = False
    sliding_window: PositiveInt | None = None

    def layer(self, index: int) -> Layer:
        """Attention, and a dense block or experts."""
        if index in self.mlp_only_layers or (index + 1) % self.decoder_sparse_step:
            return self.attention(index), DenseFeedForward(self.intermediate_size)
        return self.attention(index), MixtureOfExperts(
            self.num_experts,
            self.num_experts_per_tok,
            self.moe_intermediate_size,
            self.shared_expert_intermediate_size,
            shared_gate=True,
        )

    def attention_traits(self) -> dict[str, bool]:
        """Biases, but none on the output projection."""
        return {"projection_bias": self.qkv_bias}


class PhiMoeConfig(RoutedConfig, GroupedQueryConfig):
    """Phi-3.5-MoE: LayerNorm, biases of attention; the head has a bias (32,064 numbers, left out)."""

    model_types: ClassVar[tuple[str, ...]] = ("phimoe",)
    architectures: ClassVar[tuple[str, ...]] = ("PhiMoEForCausalLM", "PhimoeForCausalLM")

    intermediate_size: PositiveInt
    num_local_experts: PositiveInt
    attention_bias: bool = False
    lm_head_bias: bool = False
    sliding_window: PositiveInt | None = None
    input_jitter_noise: float = 0.0

    def layer(self, index: int) -> Layer:
        """Attention and experts, the same in all layers."""
        experts = MixtureOfExperts(self.num_local_experts, self.num_experts_per_tok, self.intermediate_size)
        return self.attention(index), experts

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def window_tokens(self, index: int) -> int | None:
        """The same window, or none, in all layers."""
        return self.sliding_window

    def particulars(self) -> dict[str, Any]:
        """LayerNorm."""
        return {"norm_bias": True}


class ArcticConfig(RoutedConfig, GroupedQueryConfig):
    """Arctic: experts beside a dense block as wide as the hidden size, each with a norm of its own."""

    model_types: ClassVar[tuple[str, ...]] = ("arctic",)
    architectures: ClassVar[tuple[str, ...]] = ("ArcticForCausalLM",)

    intermediate_size: PositiveInt
    num_local_experts: PositiveInt
    moe_layer_frequency: PositiveInt = 2
    use_residual: Literal[True] = True

    def layer(self, index: int) -> Layer:
        """Attention, and experts with the dense block in every ``moe_layer_frequency``-th layer."""
        if (index + 1) % self.moe_layer_frequency:
            return self.attention(index), DenseFeedForward(self.intermediate_size)
        experts = MixtureOfExperts(
            self.num_local_experts, self.num_experts_per_tok, self.intermediate_size, self.hidden_size
        )
        return self.attention(index), experts

    def particulars(self) -> dict[str, Any]:
        """A norm more, of the dense block."""
        return {"norms_per_layer": 3}


class _DbrxAttention(BaseModel):
    kv_n_heads: PositiveInt


class _DbrxExperts(BaseModel):
    ffn_hidden_size: PositiveInt
    moe_num_experts: PositiveInt
    moe_top_k: PositiveInt


class DbrxConfig(GroupedQueryConfig):
    """DBRX."""

    model_types: ClassVar[tuple[str, ...]] = ("dbrx",)
    architectures: ClassVar[tuple[str, ...]] = ("DbrxForCausalLM",)

    hidden_size: PositiveInt = Field(validation_alias="d_model")
    num_hidden_layers: LayerCount = Field(validation_alias="n_layers")
    num_attention_heads: PositiveInt = Field(validation_alias="n_heads")
    max_position_embeddings: PositiveInt = Field(validation_alias="max_seq_len")
    num_key_value_heads: None = None
    attn_config: _DbrxAttention
    ffn_config: _DbrxExperts

    def layer(self, index: int) -> Layer:
        """Attention and experts, the same in all layers."""
        experts = self.ffn_config
        return self.attention(index), MixtureOfExperts(
            experts.moe_num_experts, experts.moe_top_k, experts.ffn_hidden_size
        )

    def kv_heads(self) -> int:
        """As ``attn_config`` says."""
        return self.attn_config.kv_n_heads


class HunyuanMoeConfig(GroupedQueryConfig):
    """Hunyuan-A13B: what others state once is stated for every layer."""

    model_types: ClassVar[tuple[str, ...]] = ("hunyuan_v1_moe", "hunyuan")
    architectures: ClassVar[tuple[str, ...]] = ("HunYuanMoEV1ForCausalLM",)

    intermediate_size: PositiveInt
    num_experts: PositiveInt
    moe_topk: PositiveInt | list[PositiveInt]
    num_shared_expert: PositiveInt | list[PositiveInt] = 1
    moe_intermediate_size: PositiveInt | list[PositiveInt] | None = None
    use_qk_norm: bool = True
    use_cla: Literal[False] = False
    use_mixed_mlp_moe: Literal[True] = True
    attention_bias: bool = False
    attention_head_dim: PositiveInt | None = None
    moe_layer_num_skipped: NonNegativeInt = 0

    def layer(self, index: int) -> Layer:
        """Attention and experts."""
        if index < self.moe_layer_num_skipped:
            return self.attention(index), DenseFeedForward(self.intermediate_size)
        width = _of_layer(self.moe_intermediate_size, index) or self.intermediate_size
        shared = (_of_layer(self.num_shared_expert, index) or 0) * self.intermediate_size
        topk = _of_layer(self.moe_topk, index) or 1
        return self.attention(index), MixtureOfExperts(self.num_experts, topk, width, shared)

    def attention_traits(self) -> dict[str, bool]:
        """A norm of each head."""
        bias = {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}
        return bias | {"query_key_norm": self.use_qk_norm}


def _of_layer(value: int | list[int] | None, index: int) -> int | None:
    return value[index] if isinstance(value, list) else value
