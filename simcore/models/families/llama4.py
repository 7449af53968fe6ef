"""The language model of Llama 4."""

from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, RoutedConfig
from simcore.models.spec import DenseFeedForward, MixtureOfExperts


class Llama4Config(RoutedConfig, GroupedQueryConfig):
    """Llama 4: experts in every ``interleave_moe_layer_step``-th layer, a dense block in the others.

    Three layers of four see the chunk of ``attention_chunk_size`` tokens that a token is in; they count as if they slid
    over as many, which is twice as much on average. Their norms on queries and keys have no weights.
    """

    model_types: ClassVar[tuple[str, ...]] = ("llama4_text", "llama4")
    architectures: ClassVar[tuple[str, ...]] = ("Llama4ForCausalLM", "Llama4ForConditionalGeneration")

    head_dim: PositiveInt
    intermediate_size: PositiveInt
    intermediate_size_mlp: PositiveInt
    num_local_experts: PositiveInt
    interleave_moe_layer_step: PositiveInt = 1
    moe_layers: list[NonNegativeInt] | None = None
    attention_bias: bool = False
    attention_chunk_size: PositiveInt | None = 8192
    no_rope_layers: list[Literal[0, 1]] | None = None
    no_rope_layer_interval: PositiveInt = 4
    layer_types: list[Literal["chunked_attention", "full_attention"]] | None = None
    use_qk_norm: bool = True

    def layer(self, index: int) -> Layer:
        """Attention, and experts with one that every token runs through, or a dense block."""
        routed = (
            (index + 1) % self.interleave_moe_layer_step == 0 if self.moe_layers is None else index in self.moe_layers
        )
        if not routed:
            return self.attention(index), DenseFeedForward(self.intermediate_size_mlp)
        return self.attention(index), MixtureOfExperts(
            self.num_local_experts, self.num_experts_per_tok, self.intermediate_size, self.intermediate_size
        )

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def window_tokens(self, index: int) -> int | None:
        """Layers without rotary positions see everything."""
        if self.layer_types is not None:
            chunked = self.layer_types[index] == "chunked_attention"
        elif self.no_rope_layers:
            chunked = self.no_rope_layers[index] == 1
        else:
            chunked = (index + 1) % self.no_rope_layer_interval != 0
        return self.attention_chunk_size if chunked else None

    def notices(self) -> tuple[str, ...]:
        """Chunks are no windows."""
        if self.attention_chunk_size is None:
            return ()
        return (
            f"Layers that see their chunk of {self.attention_chunk_size:,} tokens are taken to slide over as many: "
            f"beyond that they read up to twice what they do.",
        )
