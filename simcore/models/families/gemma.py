"""Gemma 1 to 4: from 2 on local and global layers take turns, and each layer has four norms."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, Field, PositiveInt

from simcore.models.families.base import Layer, UniformConfig, WindowedConfig
from simcore.models.spec import Attention, DenseFeedForward, MixtureOfExperts


class GemmaConfig(UniformConfig):
    """Gemma 1: Llama with wide heads, tied to the embedding."""

    model_types: ClassVar[tuple[str, ...]] = ("gemma",)
    architectures: ClassVar[tuple[str, ...]] = ("GemmaForCausalLM",)

    head_dim: PositiveInt = 256
    attention_bias: bool = False
    tie_word_embeddings: bool = True

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}


class Gemma2Config(WindowedConfig):
    """Gemma 2: local and global layers alternate, local first."""

    model_types: ClassVar[tuple[str, ...]] = ("gemma2",)
    architectures: ClassVar[tuple[str, ...]] = ("Gemma2ForCausalLM",)

    head_dim: PositiveInt
    intermediate_size: PositiveInt
    attention_bias: bool = False
    tie_word_embeddings: bool = True

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block; layers differ in the window alone."""
        return self.attention(index), DenseFeedForward(self.intermediate_size)

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def slides(self, index: int) -> bool:
        """Every second layer is global."""
        return (index + 1) % 2 != 0

    def particulars(self) -> dict[str, Any]:
        """A norm before and another after each block."""
        return {"norms_per_layer": 4}


class Gemma3Config(Gemma2Config):
    """The language model of Gemma 3: one global layer in six, norms on queries and keys.

    The published multimodal files state few keys of their language model, so the defaults are those of its
    configuration class (``Gemma3TextConfig`` in transformers).
    """

    model_types: ClassVar[tuple[str, ...]] = ("gemma3", "gemma3_text")
    architectures: ClassVar[tuple[str, ...]] = ("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration")

    vocab_size: PositiveInt = 262_208
    num_attention_heads: PositiveInt = 8
    num_key_value_heads: PositiveInt | None = 4
    head_dim: PositiveInt = 256
    max_position_embeddings: PositiveInt = 131_072
    sliding_window: PositiveInt | None = 4096
    sliding_window_pattern: PositiveInt = Field(
        6, validation_alias=AliasChoices("sliding_window_pattern", "_sliding_window_pattern")
    )

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys, besides the biases of Gemma 2."""
        return super().attention_traits() | {"query_key_norm": True}

    def slides(self, index: int) -> bool:
        """Every ``sliding_window_pattern``-th layer is global."""
        return (index + 1) % self.sliding_window_pattern != 0


class Gemma4Config(Gemma2Config):
    """The language model of Gemma 4 without embeddings per layer: global layers have wide heads and few of keys.

    Where ``attention_k_eq_v`` holds their keys are their values too. Experts stand beside the dense block, which every
    token runs through, with norms of their own. The router's scales (a number per input and expert) are left out.
    """

    model_types: ClassVar[tuple[str, ...]] = ("gemma4_text", "gemma4")
    architectures: ClassVar[tuple[str, ...]] = ("Gemma4ForCausalLM", "Gemma4ForConditionalGeneration")
    shared_blocks: ClassVar[tuple[str, ...]] = ("",)

    num_key_value_heads: PositiveInt
    sliding_window: PositiveInt
    global_head_dim: PositiveInt
    num_global_key_value_heads: PositiveInt | None = None
    attention_k_eq_v: bool = False
    num_kv_shared_layers: Literal[0] = 0
    hidden_size_per_layer_input: Literal[0]
    vocab_size_per_layer_input: PositiveInt | None = None
    use_double_wide_mlp: Literal[False] = False
    use_bidirectional_attention: Literal["vision"] | None = None
    enable_moe_block: bool = False
    num_experts: PositiveInt | None = None
    top_k_experts: PositiveInt | None = None
    moe_intermediate_size: PositiveInt | None = None

    def layer(self, index: int) -> Layer:
        """Attention, and a dense block with or without experts beside it."""
        if not (self.enable_moe_block and self.num_experts and self.top_k_experts and self.moe_intermediate_size):
            return self.attention(index), DenseFeedForward(self.intermediate_size)
        return self.attention(index), MixtureOfExperts(
            self.num_experts, self.top_k_experts, self.moe_intermediate_size, self.intermediate_size
        )

    def attention(self, index: int) -> Attention:
        """By type of layer."""
        own = super().attention(index)
        if self.slides_at(index):
            return own
        kv_heads = self.num_global_key_value_heads if self.attention_k_eq_v else None
        return replace(
            own,
            head_dim=self.global_head_dim,
            value_head_dim=self.global_head_dim,
            kv_heads=kv_heads or self.num_key_value_heads,
            keys_as_values=self.attention_k_eq_v,
        )

    def slides(self, index: int) -> bool:
        """Every sixth layer is global, and so is the last."""
        return (index + 1) % 6 != 0 and index + 1 != self.num_hidden_layers

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys, besides the biases of Gemma 2."""
        return super().attention_traits() | {"query_key_norm": True}

    def particulars(self) -> dict[str, Any]:
        """Three norms more around experts."""
        return {"norms_per_layer": 7 if self.enable_moe_block else 4}
