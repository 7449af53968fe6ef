"""MiMo and MiMo-V2-Flash."""

from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.families.qwen import Qwen2Config
from simcore.models.spec import Attention, DenseFeedForward, MixtureOfExperts


class MiMoConfig(Qwen2Config):
    """MiMo-7B: Qwen2 with a module that predicts several tokens, which is left out."""

    model_types: ClassVar[tuple[str, ...]] = ("mimo",)
    architectures: ClassVar[tuple[str, ...]] = ("MiMoForCausalLM",)

    attention_bias: bool = True
    use_mrope: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """None on the output projection."""
        return {"projection_bias": self.attention_bias}


class MiMoV2FlashConfig(RoutedConfig, GroupedQueryConfig):
    """MiMo-V2-Flash: layers that slide have heads and sinks of their own; values are narrower than keys."""

    model_types: ClassVar[tuple[str, ...]] = ("mimo_v2_flash",)
    architectures: ClassVar[tuple[str, ...]] = ("MiMoV2FlashForCausalLM",)

    num_key_value_heads: PositiveInt
    head_dim: PositiveInt
    v_head_dim: PositiveInt
    intermediate_size: PositiveInt
    moe_intermediate_size: PositiveInt
    n_routed_experts: PositiveInt
    n_shared_experts: NonNegativeInt | None = None
    moe_layer_freq: list[Literal[0, 1]]
    hybrid_layer_pattern: list[Literal[0, 1]]
    sliding_window: PositiveInt
    swa_num_attention_heads: PositiveInt
    swa_num_key_value_heads: PositiveInt
    swa_head_dim: PositiveInt
    swa_v_head_dim: PositiveInt
    attention_bias: bool = False
    add_swa_attention_sink_bias: bool = False
    add_full_attention_sink_bias: bool = False
    sliding_window_size: PositiveInt | None = None
    attention_chunk_size: PositiveInt | None = None

    def layer(self, index: int) -> Layer:
        """Attention that slides or not, and experts or a dense block."""
        if not self.moe_layer_freq[index]:
            return self.attention(index), DenseFeedForward(self.intermediate_size)
        return self.attention(index), MixtureOfExperts(
            self.n_routed_experts,
            self.num_experts_per_tok,
            self.moe_intermediate_size,
            (self.n_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=True,
        )

    def attention(self, index: int) -> Attention:
        """By ``hybrid_layer_pattern``: 1 slides."""
        if self.hybrid_layer_pattern[index]:
            return Attention(
                self.swa_num_attention_heads,
                self.swa_num_key_value_heads,
                self.swa_head_dim,
                self.swa_v_head_dim,
                self.visible_window(self.sliding_window),
                projection_bias=self.attention_bias,
                sinks=self.add_swa_attention_sink_bias,
            )
        return Attention(
            self.num_attention_heads,
            self.num_key_value_heads,
            self.head_dim,
            self.v_head_dim,
            projection_bias=self.attention_bias,
            sinks=self.add_full_attention_sink_bias,
        )
