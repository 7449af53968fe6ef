"""LFM2: gated short convolutions in most layers, attention in some."""

from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer
from simcore.models.recurrent import ShortConvolution
from simcore.models.spec import Attention, DenseFeedForward, FeedForward, MixtureOfExperts


class Lfm2Config(GroupedQueryConfig):
    """LFM2 without experts; files may state a width from which the dense block's is worked out."""

    model_types: ClassVar[tuple[str, ...]] = ("lfm2",)
    architectures: ClassVar[tuple[str, ...]] = ("Lfm2ForCausalLM",)

    intermediate_size: PositiveInt = Field(validation_alias=AliasChoices("block_ff_dim", "intermediate_size"))
    block_auto_adjust_ff_dim: bool = True
    block_ffn_dim_multiplier: float | None = 1.0
    block_multiple_of: PositiveInt = 256
    layer_types: list[Literal["conv", "full_attention"]] | None = None
    full_attn_idxs: list[NonNegativeInt] | None = None
    conv_bias: bool = False
    convolution_width: PositiveInt = Field(3, validation_alias="conv_L_cache")
    tie_word_embeddings: bool = Field(True, validation_alias=AliasChoices("tie_word_embeddings", "tie_embedding"))

    def layer(self, index: int) -> Layer:
        """A convolution or attention, and the feed-forward block."""
        mixer: ShortConvolution | Attention = self.attention(index)
        if not self.attends(index):
            mixer = ShortConvolution(self.hidden_size, self.convolution_width, self.conv_bias)
        return mixer, self.feed_forward(index)

    def attends(self, index: int) -> bool:
        """Whether the layer ``index`` has attention."""
        if self.layer_types is not None:
            return self.layer_types[index] == "full_attention"
        return self.full_attn_idxs is None or index in self.full_attn_idxs

    def feed_forward(self, index: int) -> FeedForward:
        """Two thirds of the stated width, times a factor, rounded up."""
        width = self.intermediate_size
        if self.block_auto_adjust_ff_dim:
            width = int((self.block_ffn_dim_multiplier or 1.0) * int(2 * width / 3))
            width = -(-width // self.block_multiple_of) * self.block_multiple_of
        return DenseFeedForward(width)

    def attention_traits(self) -> dict[str, bool]:
        """A norm of each head."""
        return {"query_key_norm": True}


class Lfm2MoeConfig(Lfm2Config):
    """LFM2 with experts after the first layers."""

    model_types: ClassVar[tuple[str, ...]] = ("lfm2_moe",)
    architectures: ClassVar[tuple[str, ...]] = ("Lfm2MoeForCausalLM",)

    intermediate_size: PositiveInt
    moe_intermediate_size: PositiveInt
    num_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    num_dense_layers: NonNegativeInt
    use_expert_bias: bool = True

    def feed_forward(self, index: int) -> FeedForward:
        """A dense block of the stated width, or experts."""
        if index < self.num_dense_layers:
            return DenseFeedForward(self.intermediate_size)
        return MixtureOfExperts(
            self.num_experts, self.num_experts_per_tok, self.moe_intermediate_size, router_bias=self.use_expert_bias
        )
