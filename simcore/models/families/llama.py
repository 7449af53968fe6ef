"""Llama and the families that keep its layer: Mistral, Mixtral, Phi-3."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig, UniformConfig, WindowedConfig
from simcore.models.spec import DenseFeedForward, MixtureOfExperts


class LlamaConfig(GroupedQueryConfig):
    """Llama 1 to 3 and models published in its form (Yi, SmolLM2, …); Llama 1 files do not state key-value heads."""

    model_types: ClassVar[tuple[str, ...]] = ("llama",)
    architectures: ClassVar[tuple[str, ...]] = ("LlamaForCausalLM", "XverseForCausalLM", "AquilaForCausalLM")
    nested_defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 11_008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
    }

    num_key_value_heads: PositiveInt | None = None
    intermediate_size: PositiveInt
    attention_bias: bool = False
    mlp_bias: bool = False

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        return self.attention(index), DenseFeedForward(self.intermediate_size, bias=self.mlp_bias)

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}


class MistralConfig(GroupedQueryConfig):
    """Mistral: all layers slide (v0.1) or none does (``sliding_window`` null, from v0.2 on)."""

    model_types: ClassVar[tuple[str, ...]] = ("mistral", "ministral3")
    architectures: ClassVar[tuple[str, ...]] = ("MistralForCausalLM", "Ministral3ForCausalLM")
    nested_defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    }

    intermediate_size: PositiveInt
    sliding_window: PositiveInt | None

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        return self.attention(index), DenseFeedForward(self.intermediate_size)

    def window_tokens(self, index: int) -> int | None:
        """The same window, or none, in all layers."""
        return self.sliding_window


class MixtralConfig(RoutedConfig, GroupedQueryConfig):
    """Mixtral: Mistral's attention, and experts in every layer."""

    model_types: ClassVar[tuple[str, ...]] = ("mixtral",)
    architectures: ClassVar[tuple[str, ...]] = ("MixtralForCausalLM",)

    intermediate_size: PositiveInt
    sliding_window: PositiveInt | None = None
    num_local_experts: PositiveInt

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        experts = MixtureOfExperts(self.num_local_experts, self.num_experts_per_tok, self.intermediate_size)
        return self.attention(index), experts

    def window_tokens(self, index: int) -> int | None:
        """The same window, or none, in all layers."""
        return self.sliding_window


class Phi3Config(GroupedQueryConfig):
    """Phi-3: its fused projections (QKV in one matrix, gate and up in one) hold the same weights as Llama's."""

    model_types: ClassVar[tuple[str, ...]] = ("phi3", "phi3_v", "phi4mm")
    architectures: ClassVar[tuple[str, ...]] = ("Phi3ForCausalLM", "Phi3VForCausalLM", "Phi4MMForCausalLM")

    attention_bias: Literal[False] = False

    num_key_value_heads: PositiveInt | None = None
    intermediate_size: PositiveInt
    sliding_window: PositiveInt | None = None

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        return self.attention(index), DenseFeedForward(self.intermediate_size)

    def window_tokens(self, index: int) -> int | None:
        """The same window, or none, in all layers."""
        return self.sliding_window


class MinistralConfig(WindowedConfig, UniformConfig):
    """Ministral 8B: one layer of four sees everything, by ``layer_types`` where a file has them; else all slide."""

    model_types: ClassVar[tuple[str, ...]] = ("ministral",)
    architectures: ClassVar[tuple[str, ...]] = ("MinistralForCausalLM",)

    def slides(self, index: int) -> bool:
        """All layers, as in Mistral."""
        return True
