"""What the configurations of all families share: the keys, the checks, and the way from keys to a model's facts."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PositiveInt, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError

from simcore.models.left_out_modules import CheckpointFormat
from simcore.models.recurrent import Recurrent
from simcore.models.spec import Attention, CachedAttention, DenseFeedForward, FeedForward, LayerGroup, ModelSpec

Layer = tuple[CachedAttention | Recurrent | None, FeedForward | None]
# Published models have at most some hundred layers; a number beyond this is a slip of the pen.
LayerCount = Annotated[int, Field(gt=0, le=10_000)]
LayerType = Literal["full_attention", "sliding_attention"]

_DTYPES: Mapping[str | None, str] = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def _spellings(name: str, field: FieldInfo) -> tuple[str, ...]:
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias,) if isinstance(alias, str) else (name,)


class DecoderConfig(BaseModel):
    """Keys of a Hugging Face configuration that every family has; a subclass is the reader of one family.

    Field names are the keys as published. A key has a default only where the family's configuration class in
    ``transformers`` has the same one and published files leave the key out; any other missing key is an error.
    """

    model_config = ConfigDict(defer_build=True, strict=True, frozen=True)

    model_types: ClassVar[tuple[str, ...]]
    """Values of the key ``model_type`` that name the family, its usual name first."""
    architectures: ClassVar[tuple[str, ...]]
    """Values of the key ``architectures`` that name the family."""
    nested_defaults: ClassVar[Mapping[str, Any]] = {}
    """Values of the family's configuration class in ``transformers``, which a ``text_config`` leaves out."""
    shared_blocks: ClassVar[tuple[str, ...]] = ("shared_experts.", "shared_expert.", "shared_mlp.")
    """What checkpoints call the experts that every token runs through, within a layer's feed-forward block."""

    vocab_size: PositiveInt
    hidden_size: PositiveInt
    num_hidden_layers: LayerCount
    num_attention_heads: PositiveInt
    max_position_embeddings: PositiveInt
    tie_word_embeddings: bool = False
    quantization_config: dict[str, Any] | None = None
    torch_dtype: Literal["float32", "bfloat16", "float16"] | None = Field(None, validate_default=True)

    def layers(self) -> Iterator[Layer]:
        """All layers in order."""
        return (self.layer(index) for index in range(self.num_hidden_layers))

    @abstractmethod
    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block of the layer ``index``, counted from 0."""

    def particulars(self) -> dict[str, Any]:
        """Facts of a ``ModelSpec`` in which the family departs from the defaults there."""
        return {}

    def spec(self, name: str, checkpoint: CheckpointFormat | None = None) -> ModelSpec:
        """The model's facts, under ``name``, of a ``checkpoint`` that is quantised or (None) is not."""
        in_order = [LayerGroup(1, *layer) for layer in self.layers()]
        dtype = _DTYPES.get(self.torch_dtype, "")
        notices: list[str] = []
        if checkpoint is not None:
            dtype, in_order, notices = checkpoint.of_layers(in_order, self.shared_blocks)
        counts = Counter(in_order)
        places = {layer: place for place, layer in enumerate(counts)}
        return ModelSpec(
            name=name,
            family=self.model_types[0],
            hidden_size=self.hidden_size,
            layer_groups=tuple(replace(layer, count=count) for layer, count in counts.items()),
            vocabulary_size=self.vocab_size,
            max_context_tokens=self.max_position_embeddings,
            tied_embeddings=self.tie_word_embeddings,
            dtype=dtype,
            layer_order=tuple(places[layer] for layer in in_order),
            kv_dtype=None if checkpoint is None else checkpoint.kv_cache,
            notices=(*self.notices(), *notices),
            **self.particulars(),
        )

    def notices(self) -> tuple[str, ...]:
        """What a user must know of how the family is read."""
        return ()

    @classmethod
    def known_keys(cls) -> frozenset[str]:
        """The keys that the family reads."""
        return frozenset(key for name, field in cls.model_fields.items() for key in _spellings(name, field))

    def visible_window(self, window_tokens: int | None) -> int | None:
        """``window_tokens``, or None where it spans the whole context and so hides nothing."""
        if window_tokens is None or window_tokens >= self.max_position_embeddings:
            return None
        return window_tokens

    @field_validator(
        "layer_types",
        "mlp_layer_types",
        "indexer_types",
        "attn_type_list",
        "hybrid_layer_pattern",
        "moe_layer_freq",
        "no_rope_layers",
        "block_configs",
        "moe_topk",
        "num_shared_expert",
        "moe_intermediate_size",
        check_fields=False,
    )
    @classmethod
    def _one_entry_for_each_layer(cls, entries: Any, info: ValidationInfo) -> Any:
        layers = info.data.get("num_hidden_layers")
        if isinstance(entries, list) and layers is not None and len(entries) != layers:
            raise ValueError(f"one entry for each of the {layers} layers, not {len(entries)}")
        return entries

    @field_validator("torch_dtype")
    @classmethod
    def _some_precision_is_stated(cls, dtype: str | None, info: ValidationInfo) -> str | None:
        if dtype is None and not info.data.get("quantization_config", "broken"):
            raise PydanticKnownError("missing")
        return dtype


class GroupedQueryConfig(DecoderConfig):
    """A family whose layers have multi-head, multi-query or grouped-query attention, with or without windows."""

    num_key_value_heads: PositiveInt | None
    head_dim: PositiveInt | None = Field(None, validate_default=True)

    def attention(self, index: int) -> Attention:
        """Attention of the layer ``index``; a family adds what sets its own apart by ``attention_traits``."""
        head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
        return Attention(
            query_heads=self.num_attention_heads,
            kv_heads=self.kv_heads(),
            head_dim=head_dim,
            value_head_dim=head_dim,
            window_tokens=self.visible_window(self.window_tokens(index)),
            **self.attention_traits(),
        )

    def kv_heads(self) -> int:
        """Heads of keys and values: as many as query heads where a file states none."""
        return self.num_key_value_heads or self.num_attention_heads

    def attention_traits(self) -> dict[str, bool]:
        """Biases, norms and sinks of the family's attention, and whether it rotates."""
        return {}

    def window_tokens(self, index: int) -> int | None:
        """Sliding window of the layer ``index``, None if it attends to everything."""
        return None

    @field_validator("num_key_value_heads")
    @classmethod
    def _query_heads_share_kv_heads_evenly(cls, kv_heads: int | None, info: ValidationInfo) -> int | None:
        query_heads = info.data.get("num_attention_heads")
        if kv_heads is not None and query_heads is not None and query_heads % kv_heads:
            raise ValueError(f"a divisor of num_attention_heads ({query_heads})")
        return kv_heads

    @field_validator("head_dim")
    @classmethod
    def _heads_share_hidden_size_evenly(cls, head_dim: int | None, info: ValidationInfo) -> int | None:
        hidden_size, heads = info.data.get("hidden_size"), info.data.get("num_attention_heads")
        if head_dim is None and hidden_size is not None and heads is not None and hidden_size % heads:
            raise ValueError(
                f"a whole number, since hidden_size ({hidden_size}) is no multiple of num_attention_heads ({heads})"
            )
        return head_dim


class UniformConfig(GroupedQueryConfig):
    """A family whose layers are alike, but for windows: attention and one dense block."""

    gated: ClassVar[bool] = True
    """Whether the dense block has a gate."""

    intermediate_size: PositiveInt

    def layer(self, index: int) -> Layer:
        """Attention and feed-forward block."""
        return self.attention(index), DenseFeedForward(self.intermediate_size, self.gated, self.has_mlp_bias())

    def has_mlp_bias(self) -> bool:
        """Whether the dense block has biases."""
        return False


class WindowedConfig(GroupedQueryConfig):
    """A family in which some layers slide: told layer by layer in ``layer_types``, else by the family's own rule."""

    sliding_window: PositiveInt | None
    layer_types: list[LayerType] | None = None

    @abstractmethod
    def slides(self, index: int) -> bool:
        """Whether the layer ``index`` has a sliding window, where no ``layer_types`` says so."""

    def window_tokens(self, index: int) -> int | None:
        """Sliding window of the layer ``index``, None if it attends to everything."""
        return self.sliding_window if self.slides_at(index) else None

    def slides_at(self, index: int) -> bool:
        """Whether the layer ``index`` has a sliding window."""
        return self.slides(index) if self.layer_types is None else self.layer_types[index] == "sliding_attention"


class RoutedConfig(DecoderConfig):
    """A family with experts; each names the number of experts in its own way."""

    num_experts_per_tok: PositiveInt

    @field_validator("num_local_experts", "num_experts", "n_routed_experts", check_fields=False)
    @classmethod
    def _enough_experts_to_choose_from(cls, experts: int, info: ValidationInfo) -> int:
        per_token = info.data.get("num_experts_per_tok")
        if per_token is not None and experts < per_token:
            raise ValueError(f"at least num_experts_per_tok ({per_token})")
        return experts
