"""GPT-2 and the families before Llama that keep its dense block: no gate, LayerNorm, and biases nearly everywhere."""

from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, Field, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer, LayerCount
from simcore.models.spec import DenseFeedForward

_WIDTH = AliasChoices("n_embd", "hidden_size", "d_model")
_LAYERS = AliasChoices("n_layer", "num_hidden_layers", "n_layers", "num_layers")
_HEADS = AliasChoices("n_head", "num_attention_heads", "n_heads", "num_heads")
_CONTEXT = AliasChoices("n_positions", "max_position_embeddings", "n_ctx", "seq_length", "max_seq_len")


class PlainDecoderConfig(GroupedQueryConfig):
    """Such a family; ``feed_forward_size`` is four times the hidden size where a file states none."""

    biased: ClassVar[bool] = True
    """Whether projections, dense block and norms have biases."""
    rotary: ClassVar[bool] = True

    hidden_size: PositiveInt = Field(validation_alias=_WIDTH)
    num_hidden_layers: LayerCount = Field(validation_alias=_LAYERS)
    num_attention_heads: PositiveInt = Field(validation_alias=_HEADS)
    max_position_embeddings: PositiveInt = Field(validation_alias=_CONTEXT)
    num_key_value_heads: PositiveInt | None = None
    feed_forward_size: PositiveInt | None = Field(
        None, validation_alias=AliasChoices("n_inner", "intermediate_size", "ffn_hidden_size")
    )
    tie_word_embeddings: bool = True

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        width = self.feed_forward_size or 4 * self.hidden_size
        return self.attention(index), DenseFeedForward(width, gated=False, bias=self.biased)

    def attention_traits(self) -> dict[str, bool]:
        """Biases of all four projections."""
        return {"projection_bias": self.biased, "output_bias": self.biased, "rotary": self.rotary}

    def particulars(self) -> dict[str, Any]:
        """LayerNorm."""
        return {"norm_bias": self.biased}


class GPT2Config(PlainDecoderConfig):
    """GPT-2: learned positions."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    architectures: ClassVar[tuple[str, ...]] = ("GPT2LMHeadModel",)
    rotary: ClassVar[bool] = False

    def particulars(self) -> dict[str, Any]:
        """LayerNorm and the table of positions."""
        return {"norm_bias": True, "learned_positions": self.max_position_embeddings}


class GPTBigCodeConfig(GPT2Config):
    """SantaCoder and StarCoder: GPT-2 with one head of keys and values."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt_bigcode",)
    architectures: ClassVar[tuple[str, ...]] = ("GPTBigCodeForCausalLM",)

    multi_query: bool = True

    def kv_heads(self) -> int:
        """One, unless ``multi_query`` is off."""
        return 1 if self.multi_query else self.num_attention_heads


class GPTNeoXConfig(PlainDecoderConfig):
    """GPT-NeoX and Pythia: both blocks read the layer's input, each through a norm of its own."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt_neox",)
    architectures: ClassVar[tuple[str, ...]] = ("GPTNeoXForCausalLM",)

    tie_word_embeddings: bool = False
    attention_bias: bool = True
    use_parallel_residual: bool = True

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of attention."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def particulars(self) -> dict[str, Any]:
        """LayerNorm; one sum over ranks for both blocks."""
        return {"norm_bias": True, "parallel_blocks": self.use_parallel_residual}


class GPTJConfig(PlainDecoderConfig):
    """GPT-J and CodeGen: both blocks read one norm; the head has biases (51,200 numbers, left out), attention none."""

    model_types: ClassVar[tuple[str, ...]] = ("gptj", "codegen")
    architectures: ClassVar[tuple[str, ...]] = ("GPTJForCausalLM", "CodeGenForCausalLM")

    tie_word_embeddings: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """None of biases."""
        return {}

    def particulars(self) -> dict[str, Any]:
        """One LayerNorm for both blocks."""
        return {"norm_bias": True, "norms_per_layer": 1, "parallel_blocks": True}


class PhiConfig(PlainDecoderConfig):
    """Phi 1 to 2: both blocks read one norm; the head has a bias (51,200 numbers, left out)."""

    model_types: ClassVar[tuple[str, ...]] = ("phi",)
    architectures: ClassVar[tuple[str, ...]] = ("PhiForCausalLM",)

    tie_word_embeddings: bool = False
    qk_layernorm: Literal[False] = False

    def particulars(self) -> dict[str, Any]:
        """One LayerNorm for both blocks."""
        return {"norm_bias": True, "norms_per_layer": 1, "parallel_blocks": True}


class BloomConfig(PlainDecoderConfig):
    """BLOOM: ALiBi; another norm follows the embedding (left out: 0.0002% of 176B). Files state no context."""

    model_types: ClassVar[tuple[str, ...]] = ("bloom",)
    architectures: ClassVar[tuple[str, ...]] = ("BloomForCausalLM",)
    rotary: ClassVar[bool] = False

    max_position_embeddings: PositiveInt = Field(2048, validation_alias=AliasChoices("seq_length", "n_positions"))


class Starcoder2Config(PlainDecoderConfig):
    """StarCoder2: grouped queries, rotary positions, a window in some."""

    model_types: ClassVar[tuple[str, ...]] = ("starcoder2",)
    architectures: ClassVar[tuple[str, ...]] = ("Starcoder2ForCausalLM",)

    use_bias: bool = True
    mlp_type: Literal["default"] = "default"
    norm_type: Literal["layer_norm"] = "layer_norm"
    sliding_window: PositiveInt | None = None

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all projections."""
        return {"projection_bias": self.use_bias, "output_bias": self.use_bias}

    def window_tokens(self, index: int) -> int | None:
        """The same window, or none, in all layers."""
        return self.sliding_window


class _MptAttention(BaseModel):
    alibi: bool = False
    qk_ln: Literal[False] = False
    kv_n_heads: PositiveInt | None = None


class MptConfig(PlainDecoderConfig):
    """MPT: no biases, ALiBi, the head tied to the embedding."""

    model_types: ClassVar[tuple[str, ...]] = ("mpt",)
    architectures: ClassVar[tuple[str, ...]] = ("MPTForCausalLM", "MptForCausalLM")
    biased: ClassVar[bool] = False
    rotary: ClassVar[bool] = False

    attn_config: _MptAttention = _MptAttention()
    no_bias: Literal[True] = True
    expansion_ratio: PositiveInt = 4
    learned_pos_emb: bool = True
    ffn_config: dict[str, Any] | None = None

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        return self.attention(index), DenseFeedForward(self.expansion_ratio * self.hidden_size, gated=False)

    def kv_heads(self) -> int:
        """As many as query heads, unless ``attn_config`` says otherwise."""
        return self.attn_config.kv_n_heads or self.num_attention_heads


class FalconConfig(PlainDecoderConfig):
    """Falcon 1: one head of keys and values, or few in the 40B and 180B, whose blocks have norms of their own."""

    model_types: ClassVar[tuple[str, ...]] = ("falcon", "RefinedWeb", "RefinedWebModel")
    architectures: ClassVar[tuple[str, ...]] = ("FalconForCausalLM", "RWForCausalLM")

    max_position_embeddings: PositiveInt = Field(
        2048, validation_alias=AliasChoices("max_position_embeddings", "seq_length")
    )
    key_value_heads: PositiveInt | None = Field(None, validation_alias=AliasChoices("num_kv_heads", "n_head_kv"))
    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    num_ln_in_parallel_attn: int | None = None
    bias: bool = False
    alibi: bool = False

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block, the same in all layers."""
        width = self.feed_forward_size or 4 * self.hidden_size
        return self.attention(index), DenseFeedForward(width, gated=False, bias=self.bias)

    def kv_heads(self) -> int:
        """One under ``multi_query``, else as stated; Falcon-40B's first files state none and have 8."""
        if self.new_decoder_architecture:
            return self.key_value_heads or self.num_attention_heads
        return 1 if self.multi_query else self.num_attention_heads

    def attention_traits(self) -> dict[str, bool]:
        """One switch for all biases."""
        return {"projection_bias": self.bias, "output_bias": self.bias, "rotary": not self.alibi}

    def particulars(self) -> dict[str, Any]:
        """LayerNorm: one for both blocks, but two in the newer architecture (Falcon2-11B states one) or in sequence."""
        two = not self.parallel_attn
        if self.new_decoder_architecture:
            two = self.num_ln_in_parallel_attn in (None, 2)
        return {"norm_bias": True, "norms_per_layer": 1 + two, "parallel_blocks": self.parallel_attn}
