"""Families with routed experts beside grouped-query attention, each with keys and traits of its own."""

from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, Field, NonNegativeInt, PositiveInt

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


class FirstDenseConfig(RoutedConfig, GroupedQueryConfig):
    """A family with dense first layers, then experts with some that every token runs through (as DeepSeek has it)."""

    num_experts_per_tok: PositiveInt = Field(
        validation_alias=AliasChoices("num_experts_per_tok", "moe_k", "num_experts_per_token")
    )
    experts: PositiveInt = Field(validation_alias=AliasChoices("n_routed_experts", "num_experts", "moe_num_experts"))
    shared_experts: NonNegativeInt | None = Field(
        None, validation_alias=AliasChoices("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
    )
    first_k_dense_replace: NonNegativeInt = 0
    intermediate_size: PositiveInt
    moe_intermediate_size: PositiveInt

    def layer(self, index: int) -> Layer:
        """Attention, and a dense block (first layers) or experts."""
        return self.attention(index), self.feed_forward(index)

    def feed_forward(self, index: int) -> DenseFeedForward | MixtureOfExperts:
        """The block of the layer ``index``."""
        if index < self.first_k_dense_replace:
            return DenseFeedForward(self.intermediate_size)
        return MixtureOfExperts(
            self.experts,
            self.num_experts_per_tok,
            self.moe_intermediate_size,
            self.shared_width(),
            router_bias=self.balances_by_bias(),
        )

    def shared_width(self) -> int:
        """Width of the experts that every token runs through, together."""
        return (self.shared_experts or 0) * self.moe_intermediate_size

    def balances_by_bias(self) -> bool:
        """Whether a bias per expert balances load."""
        return False


class DeepseekMoeConfig(FirstDenseConfig):
    """DeepSeekMoE 16B, before latent attention."""

    model_types: ClassVar[tuple[str, ...]] = ("deepseek",)
    architectures: ClassVar[tuple[str, ...]] = ("DeepseekForCausalLM",)

    attention_bias: Literal[False] = False
    moe_layer_freq: Literal[1] = 1


class Dots1Config(FirstDenseConfig):
    """dots.llm1: norms on queries and keys."""

    model_types: ClassVar[tuple[str, ...]] = ("dots1",)
    architectures: ClassVar[tuple[str, ...]] = ("Dots1ForCausalLM",)

    attention_bias: bool = False
    moe_layer_freq: Literal[1] = 1
    sliding_window: PositiveInt | None = None
    layer_types: list[Literal["full_attention"]] | None = None

    def attention_traits(self) -> dict[str, bool]:
        """A norm of each head."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias, "query_key_norm": True}

    def balances_by_bias(self) -> bool:
        """As in DeepSeek-V3."""
        return True


class Glm4MoeConfig(FirstDenseConfig):
    """GLM-4.5, 4.6 and 4.7: biases on queries, keys and values, norms on queries and keys in the large ones."""

    model_types: ClassVar[tuple[str, ...]] = ("glm4_moe", "glm4v_moe_text", "glm4v_moe")
    architectures: ClassVar[tuple[str, ...]] = ("Glm4MoeForCausalLM", "Glm4vMoeForConditionalGeneration")

    head_dim: PositiveInt
    attention_bias: bool = False
    use_qk_norm: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """None on the output projection."""
        return {"projection_bias": self.attention_bias, "query_key_norm": self.use_qk_norm}

    def balances_by_bias(self) -> bool:
        """As in DeepSeek-V3."""
        return True


class BailingMoeConfig(FirstDenseConfig):
    """Ling 1 and 2: one matrix for queries, keys and values, norms on queries and keys in 2."""

    model_types: ClassVar[tuple[str, ...]] = ("bailing_moe", "bailing_moe_v2")
    architectures: ClassVar[tuple[str, ...]] = ("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM")

    use_bias: bool = False
    use_qkv_bias: bool = False
    use_qk_norm: bool = False
    moe_router_enable_expert_bias: bool = False
    moe_shared_expert_intermediate_size: PositiveInt | None = None
    moe_router_enable_shared_expert: bool = True
    rotary_dim: PositiveInt | None = None
    use_rmsnorm: bool = True

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of queries, keys and values, one for the output's."""
        return {
            "projection_bias": self.use_qkv_bias,
            "output_bias": self.use_bias,
            "query_key_norm": self.use_qk_norm,
        }

    def shared_width(self) -> int:
        """Stated, or that of as many experts."""
        width = self.moe_shared_expert_intermediate_size or self.moe_intermediate_size
        return (self.shared_experts or 0) * width

    def balances_by_bias(self) -> bool:
        """In Ling 2."""
        return self.moe_router_enable_expert_bias


class Ernie45MoeConfig(FirstDenseConfig):
    """ERNIE 4.5 with experts, from ``moe_layer_start_index`` on."""

    model_types: ClassVar[tuple[str, ...]] = ("ernie4_5_moe",)
    architectures: ClassVar[tuple[str, ...]] = ("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoEForCausalLM")

    tie_word_embeddings: bool = True
    use_bias: bool = False
    moe_layer_start_index: NonNegativeInt = 0
    moe_layer_end_index: int = -1
    moe_layer_interval: PositiveInt = 1
    moe_capacity: list[int] | None = None
    moe_gate: str | None = None

    def attention_traits(self) -> dict[str, bool]:
        """One switch for all biases."""
        return {"projection_bias": self.use_bias, "output_bias": self.use_bias}

    def feed_forward(self, index: int) -> DenseFeedForward | MixtureOfExperts:
        """Experts between two layers, at an interval."""
        last = self.num_hidden_layers - 1 if self.moe_layer_end_index < 0 else self.moe_layer_end_index
        inside = self.moe_layer_start_index <= index <= last
        if not inside or (index + 1) % self.moe_layer_interval:
            return DenseFeedForward(self.intermediate_size, bias=self.use_bias)
        return super().feed_forward(index)

    def balances_by_bias(self) -> bool:
        """As in DeepSeek-V3."""
        return True


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
