"""Granite with experts in every layer."""

from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.spec import MixtureOfExperts


class GraniteMoeConfig(RoutedConfig, GroupedQueryConfig):
    """Granite 3 with experts, some with a dense block that every token runs through."""

    model_types: ClassVar[tuple[str, ...]] = ("granitemoe", "granitemoeshared")
    architectures: ClassVar[tuple[str, ...]] = ("GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM")

    intermediate_size: PositiveInt
    num_local_experts: PositiveInt
    shared_intermediate_size: NonNegativeInt = 0
    attention_bias: bool = False

    def layer(self, index: int) -> Layer:
        """Attention and experts, the same in all layers."""
        experts = MixtureOfExperts(
            self.num_local_experts, self.num_experts_per_tok, self.intermediate_size, self.shared_intermediate_size
        )
        return self.attention(index), experts

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}
