"""Qwen3-Next and Qwen3.5: linear attention in most layers, gated full attention in every fourth."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationInfo, field_validator

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.recurrent import LinearAttention
from simcore.models.spec import DenseFeedForward, MixtureOfExperts


class AlternatingConfig(GroupedQueryConfig):
    """A family of layers with the gated delta rule and layers of full attention with an output gate.

    Which is which is told layer by layer in ``layer_types``, else every ``full_attention_interval``-th has full
    attention. Vision tower and multi-token prediction (``mtp_num_hidden_layers``) are left out.
    """

    gates_apart: ClassVar[bool] = False
    """Whether checkpoints have projections to gates of linear attention apart from others."""

    num_key_value_heads: PositiveInt
    head_dim: PositiveInt
    attention_bias: bool = False
    attn_output_gate: bool = True
    layer_types: list[Literal["linear_attention", "full_attention"]] | None = None
    full_attention_interval: Annotated[PositiveInt, Field(validate_default=True)] = 4
    linear_num_key_heads: PositiveInt
    linear_num_value_heads: PositiveInt
    linear_key_head_dim: PositiveInt
    linear_value_head_dim: PositiveInt
    linear_conv_kernel_dim: PositiveInt

    @abstractmethod
    def feed_forward(self, index: int) -> DenseFeedForward | MixtureOfExperts:
        """The feed-forward block of the layer ``index``."""

    def layer(self, index: int) -> Layer:
        """Linear or full attention, and the feed-forward block."""
        return self.linear_attention() if self.is_linear(index) else self.attention(index), self.feed_forward(index)

    def is_linear(self, index: int) -> bool:
        """Whether the layer ``index`` has linear attention."""
        if self.layer_types is None:
            return (index + 1) % self.full_attention_interval != 0
        return self.layer_types[index] == "linear_attention"

    def linear_attention(self) -> LinearAttention:
        """Linear attention, the same in all layers that have it."""
        return LinearAttention(
            key_heads=self.linear_num_key_heads,
            value_heads=self.linear_num_value_heads,
            key_head_dim=self.linear_key_head_dim,
            value_head_dim=self.linear_value_head_dim,
            convolution_width=self.linear_conv_kernel_dim,
            apart=self.gates_apart,
        )

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys and the output gate; one switch for the biases of all four projections."""
        return {
            "projection_bias": self.attention_bias,
            "output_bias": self.attention_bias,
            "query_key_norm": True,
            "output_gate": self.attn_output_gate,
        }

    @field_validator("layer_types")
    @classmethod
    def _some_full_attention(cls, types: list[str] | None) -> list[str] | None:
        if types and "full_attention" not in types:
            raise ValueError("full_attention for one layer at least, as a request without a KV cache is not modelled")
        return types

    @field_validator("full_attention_interval")
    @classmethod
    def _no_longer_than_the_model(cls, interval: int, info: ValidationInfo) -> int:
        layers = info.data.get("num_hidden_layers")
        if layers is not None and info.data.get("layer_types") is None and interval > layers:
            raise ValueError(f"at most {layers}, so that one layer at least has full attention")
        return interval

    @field_validator("linear_num_value_heads")
    @classmethod
    def _key_heads_serve_value_heads_evenly(cls, value_heads: int, info: ValidationInfo) -> int:
        key_heads = info.data.get("linear_num_key_heads")
        if key_heads is not None and value_heads % key_heads:
            raise ValueError(f"a multiple of linear_num_key_heads ({key_heads})")
        return value_heads


class AlternatingMoeConfig(RoutedConfig, AlternatingConfig):
    """Such a family with routed experts, and one that every token runs through, behind a gate."""

    num_experts: PositiveInt
    moe_intermediate_size: PositiveInt
    shared_expert_intermediate_size: PositiveInt

    def feed_forward(self, index: int) -> DenseFeedForward | MixtureOfExperts:
        """Routed experts and the shared one, the same in all layers."""
        return MixtureOfExperts(
            experts=self.num_experts,
            experts_per_token=self.num_experts_per_tok,
            expert_intermediate_size=self.moe_intermediate_size,
            shared_intermediate_size=self.shared_expert_intermediate_size,
            shared_gate=True,
        )


class Qwen3NextConfig(AlternatingMoeConfig):
    """Qwen3-Next: experts in every ``decoder_sparse_step``-th layer but those listed as ``mlp_only_layers``."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_next",)
    architectures: ClassVar[tuple[str, ...]] = ("Qwen3NextForCausalLM",)

    intermediate_size: PositiveInt
    decoder_sparse_step: PositiveInt = 1
    mlp_only_layers: list[NonNegativeInt] = Field(default_factory=list)

    def feed_forward(self, index: int) -> DenseFeedForward | MixtureOfExperts:
        """A dense block or experts."""
        if index in self.mlp_only_layers or (index + 1) % self.decoder_sparse_step:
            return DenseFeedForward(self.intermediate_size)
        return super().feed_forward(index)


class Qwen35Config(AlternatingConfig):
    """The language model of Qwen3.5 without experts."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_5", "qwen3_5_text")
    architectures: ClassVar[tuple[str, ...]] = ("Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM")
    gates_apart: ClassVar[bool] = True

    intermediate_size: PositiveInt

    def feed_forward(self, index: int) -> DenseFeedForward:
        """A dense block, the same in all layers."""
        return DenseFeedForward(self.intermediate_size)


class Qwen35MoeConfig(AlternatingMoeConfig):
    """The language model of Qwen3.5 with experts, which are in every layer."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen3_5_moe", "qwen3_5_moe_text")
    architectures: ClassVar[tuple[str, ...]] = ("Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM")
    gates_apart: ClassVar[bool] = True

    decoder_sparse_step: Literal[1] = 1
    mlp_only_layers: list[NonNegativeInt] = Field(default_factory=list)

    @field_validator("mlp_only_layers")
    @classmethod
    def _experts_in_every_layer(cls, layers: list[int]) -> list[int]:
        if layers:
            raise ValueError("none, as every layer of Qwen3.5 with experts has them")
        return layers
