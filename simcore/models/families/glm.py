"""ChatGLM, GLM-4 and GLM-4.1V without experts."""

from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, Field, PositiveInt

from simcore.models.families.base import LayerCount, UniformConfig


class GlmConfig(UniformConfig):
    """GLM-4-9B: biases on queries, keys and values."""

    model_types: ClassVar[tuple[str, ...]] = ("glm",)
    architectures: ClassVar[tuple[str, ...]] = ("GlmForCausalLM",)

    attention_bias: bool = True

    def attention_traits(self) -> dict[str, bool]:
        """None on the output projection."""
        return {"projection_bias": self.attention_bias}


class Glm4Config(GlmConfig):
    """GLM-4-0414 and GLM-Z1: norms before and after each block."""

    model_types: ClassVar[tuple[str, ...]] = ("glm4", "glm4v_text", "glm4v")
    architectures: ClassVar[tuple[str, ...]] = ("Glm4ForCausalLM", "Glm4vForConditionalGeneration")

    attention_bias: bool = False

    def particulars(self) -> dict[str, Any]:
        """Two norms for each block."""
        return {"norms_per_layer": 4}


class ChatGlmConfig(UniformConfig):
    """ChatGLM2, ChatGLM3 and GLM-4-9B in the form of their own code."""

    model_types: ClassVar[tuple[str, ...]] = ("chatglm",)
    architectures: ClassVar[tuple[str, ...]] = ("ChatGLMModel", "ChatGLMForConditionalGeneration")

    vocab_size: PositiveInt = Field(validation_alias=AliasChoices("padded_vocab_size", "vocab_size"))
    num_hidden_layers: LayerCount = Field(validation_alias=AliasChoices("num_layers", "num_hidden_layers"))
    max_position_embeddings: PositiveInt = Field(
        validation_alias=AliasChoices("seq_length", "max_position_embeddings", "max_sequence_length")
    )
    num_key_value_heads: PositiveInt | None = Field(
        None, validation_alias=AliasChoices("multi_query_group_num", "num_key_value_heads")
    )
    head_dim: PositiveInt | None = Field(None, validation_alias=AliasChoices("kv_channels", "head_dim"))
    intermediate_size: PositiveInt = Field(validation_alias=AliasChoices("ffn_hidden_size", "intermediate_size"))
    multi_query_attention: bool
    add_bias_linear: bool = False
    add_qkv_bias: bool = False
    rmsnorm: Literal[True] = True
    post_layer_norm: bool = True

    def kv_heads(self) -> int:
        """Few under ``multi_query_attention`` alone."""
        return super().kv_heads() if self.multi_query_attention else self.num_attention_heads

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of queries, keys and values, and one for all."""
        bias = self.add_qkv_bias or self.add_bias_linear
        return {"projection_bias": bias, "output_bias": self.add_bias_linear}

    def has_mlp_bias(self) -> bool:
        """The switch for all."""
        return self.add_bias_linear
