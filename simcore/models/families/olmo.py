"""OLMo 1 to 3."""

from typing import ClassVar

from pydantic import PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig, UniformConfig, WindowedConfig
from simcore.models.spec import MixtureOfExperts


class OlmoConfig(UniformConfig):
    """OLMo: Llama with norms without weights, which a ``ModelSpec`` counts as if they had some (0.004% of 7B)."""

    model_types: ClassVar[tuple[str, ...]] = ("olmo",)
    architectures: ClassVar[tuple[str, ...]] = ("OlmoForCausalLM",)

    attention_bias: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}


class Olmo2Config(OlmoConfig):
    """OLMo 2: norms after the blocks, and on queries and keys over all heads."""

    model_types: ClassVar[tuple[str, ...]] = ("olmo2",)
    architectures: ClassVar[tuple[str, ...]] = ("Olmo2ForCausalLM",)

    def attention_traits(self) -> dict[str, bool]:
        """Norms over all heads, besides the biases."""
        return super().attention_traits() | {"query_key_norm": True, "norm_across_heads": True}


class Olmo3Config(WindowedConfig, Olmo2Config):
    """OLMo 3: OLMo 2 that slides in three layers of four."""

    model_types: ClassVar[tuple[str, ...]] = ("olmo3",)
    architectures: ClassVar[tuple[str, ...]] = ("Olmo3ForCausalLM",)

    def slides(self, index: int) -> bool:
        """Every fourth layer is global."""
        return (index + 1) % 4 != 0


class OlmoeConfig(RoutedConfig, GroupedQueryConfig):
    """OLMoE: experts in every layer, norms on queries and keys over all heads."""

    model_types: ClassVar[tuple[str, ...]] = ("olmoe",)
    architectures: ClassVar[tuple[str, ...]] = ("OlmoeForCausalLM",)

    intermediate_size: PositiveInt
    num_experts: PositiveInt
    attention_bias: bool = False

    def layer(self, index: int) -> Layer:
        """Attention and experts, the same in all layers."""
        experts = MixtureOfExperts(self.num_experts, self.num_experts_per_tok, self.intermediate_size)
        return self.attention(index), experts

    def attention_traits(self) -> dict[str, bool]:
        """Norms over all heads; one switch for the biases of all four projections."""
        bias = {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}
        return bias | {"query_key_norm": True, "norm_across_heads": True}
