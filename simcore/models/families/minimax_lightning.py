"""MiniMax-Text-01 and M1: lightning attention in seven layers of eight."""

from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.recurrent import LightningAttention
from simcore.models.spec import MixtureOfExperts


class MiniMaxLightningConfig(RoutedConfig, GroupedQueryConfig):
    """MiniMax-Text-01: ``attn_type_list`` (0: lightning, 1: full) or ``layer_types`` tells layers apart."""

    model_types: ClassVar[tuple[str, ...]] = ("minimax", "minimax_text_01", "minimax_m1")
    architectures: ClassVar[tuple[str, ...]] = (
        "MiniMaxText01ForCausalLM",
        "MiniMaxM1ForCausalLM",
        "MiniMaxForCausalLM",
    )

    head_dim: PositiveInt
    intermediate_size: PositiveInt
    num_local_experts: PositiveInt
    attn_type_list: list[Literal[0, 1]] | None = None
    layer_types: list[Literal["linear_attention", "full_attention"]] | None = None
    shared_intermediate_size: NonNegativeInt = 0
    shared_moe_mode: str | None = None
    sliding_window: None = None
    block_size: PositiveInt = 256
    postnorm: bool = False
    layernorm_full_attention_alpha: float = 1.0
    layernorm_full_attention_beta: float = 1.0
    layernorm_linear_attention_alpha: float = 1.0
    layernorm_linear_attention_beta: float = 1.0
    layernorm_mlp_alpha: float = 1.0
    layernorm_mlp_beta: float = 1.0

    def layer(self, index: int) -> Layer:
        """Lightning or full attention, and experts."""
        experts = MixtureOfExperts(
            self.num_local_experts, self.num_experts_per_tok, self.intermediate_size, self.shared_intermediate_size
        )
        if self.attends_fully(index):
            return self.attention(index), experts
        return LightningAttention(self.num_attention_heads, self.head_dim), experts

    def attends_fully(self, index: int) -> bool:
        """Whether the layer ``index`` has full attention; every eighth where no list says so."""
        if self.layer_types is not None:
            return self.layer_types[index] == "full_attention"
        return bool(self.attn_type_list[index]) if self.attn_type_list is not None else (index + 1) % 8 == 0

    def notices(self) -> tuple[str, ...]:
        """How lightning attention is priced."""
        return ("Lightning attention is priced by the roofline: none of its kernels is measured.",)
