"""MiniMax-M2 (and 2.5)."""

from typing import ClassVar, Literal

from pydantic import PositiveInt, field_validator

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.spec import MixtureOfExperts


class MiniMaxM2Config(RoutedConfig, GroupedQueryConfig):
    """MiniMax-M2: full grouped-query attention and experts in every layer, a balancing bias per expert.

    Norms on queries and keys span all heads of a layer (``qk_norm_type`` per_layer). The router is computed in fp32
    (vLLM, models/minimax_m2.py). The multi-token-prediction modules are left out, as serving works without them.
    """

    model_types: ClassVar[tuple[str, ...]] = ("minimax_m2",)
    architectures: ClassVar[tuple[str, ...]] = ("MiniMaxM2ForCausalLM",)

    head_dim: PositiveInt
    intermediate_size: PositiveInt
    num_local_experts: PositiveInt
    attn_type_list: list[int] | None = None
    use_qk_norm: Literal[True] = True
    use_routing_bias: Literal[True] = True
    qk_norm_type: Literal["per_layer"] = "per_layer"
    use_mtp: bool = False
    mtp_transformer_layers: int | None = None

    def layer(self, index: int) -> Layer:
        """Attention and experts, the same in all layers."""
        experts = MixtureOfExperts(
            self.num_local_experts,
            self.num_experts_per_tok,
            self.intermediate_size,
            router_bias=True,
            router_dtype="fp32",
        )
        return self.attention(index), experts

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys, over all heads."""
        return {"query_key_norm": True, "norm_across_heads": True}

    @field_validator("attn_type_list")
    @classmethod
    def _softmax_attention_alone(cls, types: list[int] | None) -> list[int] | None:
        if types is not None and set(types) != {1}:
            raise ValueError("1 (softmax attention) for every layer; linear attention is not known")
        return types
