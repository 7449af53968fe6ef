"""Gemma 2 and Gemma 3: local and global layers take turns, and each layer has four norms."""

from typing import Any, ClassVar

from pydantic import AliasChoices, Field, PositiveInt

from simcore.models.families.base import Layer, WindowedConfig
from simcore.models.spec import DenseFeedForward


class Gemma2Config(WindowedConfig):
    """Gemma 2: local and global layers alternate, local first."""

    model_types: ClassVar[tuple[str, ...]] = ("gemma2",)
    architectures: ClassVar[tuple[str, ...]] = ("Gemma2ForCausalLM",)

    head_dim: PositiveInt
    intermediate_size: PositiveInt
    attention_bias: bool = False
    tie_word_embeddings: bool = True

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block; layers differ in the window alone."""
        return self.attention(index), DenseFeedForward(self.intermediate_size)

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def slides(self, index: int) -> bool:
        """Every second layer is global."""
        return (index + 1) % 2 != 0

    def particulars(self) -> dict[str, Any]:
        """A norm before and another after each block."""
        return {"norms_per_layer": 4}


class Gemma3Config(Gemma2Config):
    """The language model of Gemma 3: one global layer in six, norms on queries and keys.

    The published multimodal files state few keys of their language model, so the defaults are those of its
    configuration class (``Gemma3TextConfig`` in transformers).
    """

    model_types: ClassVar[tuple[str, ...]] = ("gemma3", "gemma3_text")
    architectures: ClassVar[tuple[str, ...]] = ("Gemma3ForCausalLM",)

    vocab_size: PositiveInt = 262_208
    num_attention_heads: PositiveInt = 8
    num_key_value_heads: PositiveInt | None = 4
    head_dim: PositiveInt = 256
    max_position_embeddings: PositiveInt = 131_072
    sliding_window: PositiveInt | None = 4096
    sliding_window_pattern: PositiveInt = Field(
        6, validation_alias=AliasChoices("sliding_window_pattern", "_sliding_window_pattern")
    )

    def attention_traits(self) -> dict[str, bool]:
        """Norms on queries and keys, besides the biases of Gemma 2."""
        return super().attention_traits() | {"query_key_norm": True}

    def slides(self, index: int) -> bool:
        """Every ``sliding_window_pattern``-th layer is global."""
        return (index + 1) % self.sliding_window_pattern != 0
