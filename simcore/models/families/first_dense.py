"""Families with grouped-query attention and experts as DeepSeek has them: dense first layers, shared experts.

DeepSeekMoE, dots.llm1, GLM-4.5 to 4.7, Ling and ERNIE 4.5.
"""

from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.spec import DenseFeedForward, MixtureOfExperts


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
    use_rmsnorm: Literal[True] = True

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
