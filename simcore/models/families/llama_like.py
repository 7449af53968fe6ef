"""Families whose layers are Llama's, with biases, norms or names of their own."""

from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, Field, PositiveInt

from simcore.models.families.base import Layer, UniformConfig, WindowedConfig
from simcore.models.spec import DenseFeedForward


class BiasSwitchConfig(UniformConfig):
    """A family with a switch for the biases of attention and another for those of the dense block."""

    num_key_value_heads: PositiveInt | None = None
    attention_bias: bool = False
    mlp_bias: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def has_mlp_bias(self) -> bool:
        """The other switch."""
        return self.mlp_bias


class GraniteConfig(BiasSwitchConfig):
    """Granite 3: Llama with multipliers, its head tied to the embedding where nothing else is said."""

    model_types: ClassVar[tuple[str, ...]] = ("granite",)
    architectures: ClassVar[tuple[str, ...]] = ("GraniteForCausalLM",)


class MiniCPMConfig(BiasSwitchConfig):
    """MiniCPM 1, 2 and 4: Llama with factors on what is added, tied to the embedding where nothing else is said."""

    model_types: ClassVar[tuple[str, ...]] = ("minicpm",)
    architectures: ClassVar[tuple[str, ...]] = ("MiniCPMForCausalLM",)

    tie_word_embeddings: bool = True
    num_experts: Literal[0] = 0
    sparse_config: None = None


class SmolLM3Config(BiasSwitchConfig):
    """SmolLM3: every fourth layer rotates nothing, which costs next to nothing less."""

    model_types: ClassVar[tuple[str, ...]] = ("smollm3",)
    architectures: ClassVar[tuple[str, ...]] = ("SmolLM3ForCausalLM",)

    tie_word_embeddings: bool = True
    no_rope_layers: list[int] | None = None
    no_rope_layer_interval: int = 4
    use_sliding_window: bool = False
    layer_types: list[str] | None = None
    sliding_window: PositiveInt | None = None

    def window_tokens(self, index: int) -> int | None:
        """The layers that ``layer_types`` says slide."""
        slides = self.layer_types is not None and self.layer_types[index] == "sliding_attention"
        return self.sliding_window if slides else None


class ArceeConfig(BiasSwitchConfig):
    """Arcee (AFM): no gate in the dense block."""

    model_types: ClassVar[tuple[str, ...]] = ("arcee",)
    architectures: ClassVar[tuple[str, ...]] = ("ArceeForCausalLM",)
    gated: ClassVar[bool] = False


class ApertusConfig(BiasSwitchConfig):
    """Apertus: no gate in the dense block, norms on queries and keys."""

    model_types: ClassVar[tuple[str, ...]] = ("apertus",)
    architectures: ClassVar[tuple[str, ...]] = ("ApertusForCausalLM",)
    gated: ClassVar[bool] = False

    qk_norm: bool = True
    post_norm: Literal[False] = False

    def attention_traits(self) -> dict[str, bool]:
        """A norm of each head, besides the biases."""
        return super().attention_traits() | {"query_key_norm": self.qk_norm}


class SeedOssConfig(BiasSwitchConfig):
    """Seed-OSS: a switch of its own for the bias of the output projection."""

    model_types: ClassVar[tuple[str, ...]] = ("seed_oss",)
    architectures: ClassVar[tuple[str, ...]] = ("SeedOssForCausalLM",)

    head_dim: PositiveInt
    attention_bias: bool = True
    attention_out_bias: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """Biases of queries, keys and values, and of the output."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_out_bias}


class HunyuanDenseConfig(BiasSwitchConfig):
    """Hunyuan without experts: norms on queries and keys."""

    model_types: ClassVar[tuple[str, ...]] = ("hunyuan_v1_dense",)
    architectures: ClassVar[tuple[str, ...]] = ("HunYuanDenseV1ForCausalLM",)

    use_qk_norm: bool = True
    use_cla: Literal[False] = False

    def attention_traits(self) -> dict[str, bool]:
        """A norm of each head, besides the biases."""
        return super().attention_traits() | {"query_key_norm": self.use_qk_norm}


class InternLMConfig(UniformConfig):
    """InternLM 1 to 3: ``bias`` is of all projections, of attention in 1 and 2, of the dense block too in 3."""

    model_types: ClassVar[tuple[str, ...]] = ("internlm2", "internlm3", "internlm")
    architectures: ClassVar[tuple[str, ...]] = ("InternLM2ForCausalLM", "InternLM3ForCausalLM", "InternLMForCausalLM")

    num_key_value_heads: PositiveInt | None = None
    bias: bool
    qkv_bias: bool | None = None

    def attention_traits(self) -> dict[str, bool]:
        """``qkv_bias`` is InternLM3's."""
        return {"projection_bias": self.bias if self.qkv_bias is None else self.qkv_bias, "output_bias": self.bias}

    def has_mlp_bias(self) -> bool:
        """In InternLM3 alone."""
        return self.bias and self.qkv_bias is not None


class BaichuanConfig(UniformConfig):
    """Baichuan 1 and 2: multi-head attention from one matrix; the 13B models have no rotary embedding (ALiBi)."""

    model_types: ClassVar[tuple[str, ...]] = ("baichuan",)
    architectures: ClassVar[tuple[str, ...]] = ("BaichuanForCausalLM", "BaiChuanForCausalLM")

    num_key_value_heads: None = None
    max_position_embeddings: PositiveInt = Field(
        validation_alias=AliasChoices("max_position_embeddings", "model_max_length")
    )

    def attention_traits(self) -> dict[str, bool]:
        """The 7B models alone have a hidden size of 4096 and rotate."""
        return {"rotary": self.hidden_size == 4096}

    @classmethod
    def known_keys(cls) -> frozenset[str]:
        """Both names of the context, also where one file has both."""
        return super().known_keys() | {"z_loss_weight"}


class Qwen1Config(UniformConfig):
    """Qwen 1: ``intermediate_size`` counts the gate and its fellow together; queries, keys and values have biases."""

    model_types: ClassVar[tuple[str, ...]] = ("qwen",)
    architectures: ClassVar[tuple[str, ...]] = ("QWenLMHeadModel",)

    num_key_value_heads: None = None
    head_dim: PositiveInt | None = Field(None, validation_alias="kv_channels")
    no_bias: bool = True

    def layer(self, index: int) -> Layer:
        """Half of ``intermediate_size`` is the block's width."""
        return self.attention(index), DenseFeedForward(self.intermediate_size // 2, bias=not self.no_bias)

    def attention_traits(self) -> dict[str, bool]:
        """Biases on queries, keys and values whatever ``no_bias`` says."""
        return {"projection_bias": True, "output_bias": not self.no_bias}


class Ernie45Config(UniformConfig):
    """ERNIE 4.5 without experts."""

    model_types: ClassVar[tuple[str, ...]] = ("ernie4_5",)
    architectures: ClassVar[tuple[str, ...]] = ("Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM")

    tie_word_embeddings: bool = True
    use_bias: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """One switch for all biases."""
        return {"projection_bias": self.use_bias, "output_bias": self.use_bias}

    def has_mlp_bias(self) -> bool:
        """The same switch."""
        return self.use_bias


class ExaoneConfig(UniformConfig):
    """EXAONE 3 and 3.5."""

    model_types: ClassVar[tuple[str, ...]] = ("exaone",)
    architectures: ClassVar[tuple[str, ...]] = ("ExaoneForCausalLM",)

    num_hidden_layers: PositiveInt = Field(validation_alias=AliasChoices("num_layers", "num_hidden_layers"))


class Exaone4Config(WindowedConfig, UniformConfig):
    """EXAONE 4: norms after the blocks and on queries and keys; the 32B slides in three layers of four."""

    model_types: ClassVar[tuple[str, ...]] = ("exaone4",)
    architectures: ClassVar[tuple[str, ...]] = ("Exaone4ForCausalLM",)

    sliding_window: PositiveInt | None = None
    sliding_window_pattern: str | PositiveInt | None = None
    reorder_and_qk_norm: Literal[True] = True

    def attention_traits(self) -> dict[str, bool]:
        """A norm of each head."""
        return {"query_key_norm": True}

    def slides(self, index: int) -> bool:
        """By a pattern of letters ("LLLG"), or every so-many-th layer is global; the last always is."""
        pattern = self.sliding_window_pattern
        if pattern is None or index == self.num_hidden_layers - 1:
            return False
        if isinstance(pattern, str):
            return pattern[index % len(pattern)] == "L"
        return (index + 1) % pattern != 0


class LayerNormConfig(UniformConfig):
    """A family with LayerNorm, which has a bias, instead of RMSNorm."""

    def particulars(self) -> dict[str, Any]:
        """A weight and a bias each."""
        return {"norm_bias": True}


class NemotronConfig(BiasSwitchConfig, LayerNormConfig):
    """Nemotron-4 and Minitron: LayerNorm, and squared ReLU without a gate."""

    model_types: ClassVar[tuple[str, ...]] = ("nemotron",)
    architectures: ClassVar[tuple[str, ...]] = ("NemotronForCausalLM",)
    gated: ClassVar[bool] = False


class StableLmConfig(LayerNormConfig):
    """StableLM 2 and 3B-4e1t; the 12B has both blocks read the same norm, and norms on queries and keys."""

    model_types: ClassVar[tuple[str, ...]] = ("stablelm", "stablelm_epoch")
    architectures: ClassVar[tuple[str, ...]] = ("StableLmForCausalLM", "StableLMEpochForCausalLM")

    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False

    def attention_traits(self) -> dict[str, bool]:
        """Biases of queries, keys and values, norms of each head of queries and keys."""
        return {"projection_bias": self.use_qkv_bias, "query_key_norm": self.qk_layernorm}

    def particulars(self) -> dict[str, Any]:
        """One norm for both blocks where they are parallel."""
        parallel = self.use_parallel_residual
        return {"norm_bias": True, "parallel_blocks": parallel, "norms_per_layer": 1 if parallel else 2}
