"""Kimi Linear: linear attention with a decay per channel in most layers, latent attention in some."""

from typing import ClassVar, Literal

from pydantic import AliasChoices, BaseModel, Field, PositiveInt

from simcore.models.families.base import Layer
from simcore.models.families.deepseek import DeepseekV3Config
from simcore.models.recurrent import LinearAttention


class _LinearLayers(BaseModel):
    kda_layers: list[PositiveInt]
    full_attn_layers: list[PositiveInt]
    num_heads: PositiveInt
    head_dim: PositiveInt
    short_conv_kernel_size: PositiveInt = 4
    use_full_rank_gate: Literal[False] = False


class KimiLinearConfig(DeepseekV3Config):
    """Kimi Linear; layers are counted from 1 in ``linear_attn_config``."""

    model_types: ClassVar[tuple[str, ...]] = ("kimi_linear",)
    architectures: ClassVar[tuple[str, ...]] = ("KimiLinearForCausalLM",)

    max_position_embeddings: PositiveInt = Field(
        validation_alias=AliasChoices("model_max_length", "max_position_embeddings")
    )
    num_experts_per_tok: PositiveInt = Field(
        validation_alias=AliasChoices("num_experts_per_token", "num_experts_per_tok")
    )
    n_routed_experts: PositiveInt = Field(validation_alias=AliasChoices("num_experts", "n_routed_experts"))
    n_shared_experts: PositiveInt | None = Field(
        None, validation_alias=AliasChoices("num_shared_experts", "n_shared_experts")
    )
    linear_attn_config: _LinearLayers
    mla_use_nope: bool = True
    mla_use_output_gate: Literal[False] = False
    routed_expert_hidden_size: None = None
    attn_res_block_size: None = None

    def layer(self, index: int) -> Layer:
        """Linear or latent attention, and a dense block (first layers) or experts."""
        attention, feed_forward = super().layer(index)
        linear = self.linear_attn_config
        if index + 1 not in linear.kda_layers:
            return attention, feed_forward
        return (
            LinearAttention(
                linear.num_heads,
                linear.num_heads,
                linear.head_dim,
                linear.head_dim,
                linear.short_conv_kernel_size,
                gate_rank=linear.head_dim,
            ),
            feed_forward,
        )

    def notices(self) -> tuple[str, ...]:
        """How linear attention is priced."""
        return ("Linear attention that decays by channel is priced by the roofline: no kernel of it is measured.",)
