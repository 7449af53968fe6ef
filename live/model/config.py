"""What a forward pass must know of a model beyond its shape."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from simcore.core.errors import InputError, UnknownNameError
from simcore.core.validation import explain
from simcore.models import Attention, LayerGroup, ModelSpec, read_config

FAMILIES = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
"""Families of ``simcore.models`` that the live engine runs."""
_LLAMA_THETA = 10_000.0
"""What files of Llama 1 and 2 leave out."""


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """How Llama 3.1 stretches rotary wavelengths (``rope_type`` llama3): long ones by ``factor``, short ones not."""

    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    original_context_tokens: int


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """A model's shape and the numbers of its norms and rotations.

    ``rope_scaling`` is a factor that divides all positions (``rope_type`` linear), Llama 3.1's rule, or None;
    ``renormalise_experts`` tells whether the weights of a token's experts are made to sum to one.
    ``end_tokens`` are the ids that end an output.
    """

    spec: ModelSpec
    rms_epsilon: float
    rope_theta: float
    rope_scaling: float | Llama3Scaling | None = None
    renormalise_experts: bool = True
    end_tokens: tuple[int, ...] = ()

    @property
    def layers(self) -> tuple[LayerGroup, ...]:
        """The kind of each layer, from the first to the last."""
        spec = self.spec
        order = spec.layer_order or [place for place, group in enumerate(spec.layer_groups) for _ in range(group.count)]
        return tuple(spec.layer_groups[place] for place in order)

    @property
    def attention(self) -> Attention:
        """Attention of the first layer; others differ from it in the window alone."""
        attention = self.layers[0].attention
        assert isinstance(attention, Attention)
        return attention


class _Rope(BaseModel):
    """``rope_parameters`` or ``rope_scaling`` of a configuration, which older files call ``type``."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["default", "linear", "llama3"] = Field("default", validation_alias=AliasChoices("rope_type", "type"))
    rope_theta: PositiveFloat | None = Field(None, allow_inf_nan=False)
    factor: PositiveFloat = Field(1.0, allow_inf_nan=False)
    low_freq_factor: PositiveFloat = Field(1.0, allow_inf_nan=False)
    high_freq_factor: PositiveFloat = Field(4.0, allow_inf_nan=False)
    original_max_position_embeddings: PositiveInt = 8192

    def scaling(self) -> float | Llama3Scaling | None:
        if self.kind == "linear":
            return self.factor
        if self.kind == "llama3":
            low, high = self.low_freq_factor, self.high_freq_factor
            return Llama3Scaling(self.factor, low, high, self.original_max_position_embeddings)
        return None


class _ForwardKeys(BaseModel):
    """Keys of a Hugging Face configuration that a forward pass needs and a simulation does not."""

    model_config = ConfigDict(frozen=True)

    rms_norm_eps: PositiveFloat = Field(allow_inf_nan=False)
    rope_theta: PositiveFloat | None = Field(None, allow_inf_nan=False)
    rope_parameters: _Rope | None = None
    rope_scaling: _Rope | None = None
    hidden_act: Literal["silu"] = "silu"
    norm_topk_prob: bool = False
    partial_rotary_factor: float | None = Field(None, ge=1.0, le=1.0)
    eos_token_id: int | list[int] | None = None
    quantization_config: None = None


def read_decoder_config(config: Mapping[str, Any], name: str, source: str = "") -> DecoderConfig:
    """The model that the keys of a Hugging Face ``config.json`` describe; ``source`` goes before a field in errors.

    Raises ``InputError`` for a key that is missing, absurd or of no model that the live engine runs.
    """
    try:
        keys = _ForwardKeys.model_validate(config)
    except ValidationError as error:
        raise explain(error, _ForwardKeys, source) from None
    spec = read_config(config, name, source)
    if spec.family not in FAMILIES:
        raise UnknownNameError(f"{source}model_type", spec.family, FAMILIES)
    rope = keys.rope_parameters or keys.rope_scaling or _Rope.model_validate({})
    theta = rope.rope_theta or keys.rope_theta or (_LLAMA_THETA if spec.family == "llama" else None)
    if theta is None:
        raise InputError(f"{source}rope_theta", None, "a number above 0")
    _check_heads(spec, source)
    ends = keys.eos_token_id if isinstance(keys.eos_token_id, list) else [keys.eos_token_id]
    return DecoderConfig(
        spec=spec,
        rms_epsilon=keys.rms_norm_eps,
        rope_theta=theta,
        rope_scaling=rope.scaling(),
        renormalise_experts=spec.family == "mixtral" or keys.norm_topk_prob,
        end_tokens=tuple(end for end in ends if end is not None),
    )


def _check_heads(spec: ModelSpec, source: str) -> None:
    for group in spec.layer_groups:
        if isinstance(group.attention, Attention) and group.attention.head_dim % 2:
            raise InputError(f"{source}head_dim", group.attention.head_dim, "an even number, for rotary embedding")
