"""Qwen2 (and 2.5), Qwen3 and Qwen3-MoE."""

from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig, WindowedConfig
from simcore.models.spec import DenseFeedForward, MixtureOfExperts


class Qwen2Config(WindowedConfig):
    """Qwen2: biases on query, key and value; ``sliding_window`` is idle unless ``use_sliding_window`` is true."""

    model_types: ClassVar[tuple[str, ...]] = (
        "qwen2",
        "qwen2_vl",
        "qwen2_vl_text",
        "qwen2_5_vl",
        "qwen2_5_vl_text",
        "qwen2_5_omni_text",
    )
    architectures: ClassVar[tuple[str, ...]] = (
        "Qwen2ForCausalLM",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
    )

    intermediate_size: PositiveInt
    sliding_window: PositiveInt | None = None
    use_sliding_window: bool = False
    max_window_layers: NonNegativeInt = 28

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block; layers differ in the window alone."""
        return self.attention(index), DenseFeedForward(self.intermediate_size)

    def attention_traits(self) -> dict[str, bool]:
        """Biases, but none on the output projection."""
        return {"projection_bias": True}

    def slides(self, index: int) -> bool:
        """The first ``max_window_layers`` layers see everything, later ones slide."""
        return index >= self.max_window_layers

    def window_tokens(self, index: int) -> int | None:
        """Sliding window of the layer ``index``, None throughout while windows are switched off."""
        return super().window_tokens(index) if self.use_sliding_window else None


class Qwen3Config(Qwen2Config):
    """Qwen3: Qwen2 with norms on queries and keys, a stated head width, and biases off in what was published."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen3", "qwen3_vl_text", "qwen3_vl")
    architectures: ClassVar[tuple[str, ...]] = ("Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration")

    head_dim: PositiveInt
    attention_bias: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys; one switch for the biases of all four projections."""
        return {
            "projection_bias": self.attention_bias,
            "output_bias": self.attention_bias,
            "query_key_norm": True,
        }


class Qwen3MoeConfig(RoutedConfig, GroupedQueryConfig):
    """Qwen3-MoE: experts in every ``decoder_sparse_step``-th layer but those listed as ``mlp_only_layers``."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_moe", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text")
    architectures: ClassVar[tuple[str, ...]] = ("Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration")

    intermediate_size: PositiveInt
    attention_bias: bool = False
    use_qk_norm: Literal[True] = True
    sliding_window: PositiveInt | None = None
    use_sliding_window: bool = False
    moe_intermediate_size: PositiveInt
    # transformers 5 writes the second name.
    num_experts: PositiveInt = Field(validation_alias=AliasChoices("num_experts", "num_local_experts"))
    decoder_sparse_step: PositiveInt = 1
    mlp_only_layers: list[NonNegativeInt] = Field(default_factory=list)

    def layer(self, index: int) -> Layer:
        """Attention, and a dense block or experts."""
        if index in self.mlp_only_layers or (index + 1) % self.decoder_sparse_step:
            return self.attention(index), DenseFeedForward(self.intermediate_size)
        experts = MixtureOfExperts(self.num_experts, self.num_experts_per_tok, self.moe_intermediate_size)
        return self.attention(index), experts

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys; one switch for the biases of all four projections."""
        return {
            "projection_bias": self.attention_bias,
            "output_bias": self.attention_bias,
            "query_key_norm": True,
        }

    def window_tokens(self, index: int) -> int | None:
        """The same window in all layers, if windows are switched on."""
        return self.sliding_window if self.use_sliding_window else None
