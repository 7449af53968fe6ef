"""OPT."""

from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer
from simcore.models.spec import DenseFeedForward

# The position table starts with two rows that no position uses (OPTLearnedPositionalEmbedding in transformers).
_UNUSED_POSITIONS = 2


class OPTConfig(GroupedQueryConfig):
    """OPT: multi-head attention, plain two-matrix feed-forward, LayerNorm, learned positions, biases everywhere."""

    model_types: ClassVar[tuple[str, ...]] = ("opt",)
    architectures: ClassVar[tuple[str, ...]] = ("OPTForCausalLM",)

    num_key_value_heads: None = None
    ffn_dim: PositiveInt
    word_embed_proj_dim: PositiveInt
    tie_word_embeddings: bool = True
    enable_bias: bool = True
    do_layer_norm_before: bool = True
    layer_norm_elementwise_affine: Literal[True] = True

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        return self.attention(index), DenseFeedForward(self.ffn_dim, gated=False, bias=self.enable_bias)

    def attention_traits(self) -> dict[str, bool]:
        """One switch for all biases; positions are learned, so that nothing is rotated."""
        return {"projection_bias": self.enable_bias, "output_bias": self.enable_bias, "rotary": False}

    def particulars(self) -> dict[str, Any]:
        """LayerNorm, learned positions, and what sets opt-350m apart (narrow embedding, no norm at the end)."""
        narrow = self.word_embed_proj_dim != self.hidden_size
        return {
            "norm_bias": True,
            "learned_positions": self.max_position_embeddings + _UNUSED_POSITIONS,
            "final_norm": self.do_layer_norm_before,
            "embedding_size": self.word_embed_proj_dim if narrow else None,
        }
