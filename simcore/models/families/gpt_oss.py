"""GPT-OSS."""

from typing import ClassVar, Literal

from pydantic import PositiveInt

from simcore.models.families.base import Layer, RoutedConfig, WindowedConfig
from simcore.models.spec import MixtureOfExperts


class GptOssConfig(RoutedConfig, WindowedConfig):
    """GPT-OSS: experts in every layer, attention sinks, biases everywhere (router too), every other layer slides."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt_oss",)
    architectures: ClassVar[tuple[str, ...]] = ("GptOssForCausalLM",)

    head_dim: PositiveInt
    intermediate_size: PositiveInt
    num_local_experts: PositiveInt
    attention_bias: Literal[True] = True
    experts_per_token: PositiveInt | None = None

    def layer(self, index: int) -> Layer:
        """Attention and experts; layers differ in the window alone."""
        experts = MixtureOfExperts(
            self.num_local_experts,
            self.num_experts_per_tok,
            self.intermediate_size,
            bias=True,
            router_bias=True,
        )
        return self.attention(index), experts

    def attention_traits(self) -> dict[str, bool]:
        """Biases on all four projections, and one learned sink per query head."""
        return {"projection_bias": True, "output_bias": True, "sinks": True}

    def slides(self, index: int) -> bool:
        """Sliding and full layers alternate, sliding first."""
        return (index + 1) % 2 != 0
