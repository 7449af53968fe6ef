"""How a published checkpoint is quantised: what ``quantization_config`` or ``hf_quant_config.json`` say of it.

Each method has a reader of its own; all of them end in a ``CheckpointFormat``. What is known of the methods is from
their own writers: ModelOpt, AutoAWQ, GPTQModel, compressed-tensors, and the loaders of vLLM (recalled).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from simcore.core.errors import FileError, InputError
from simcore.core.validation import explain
from simcore.models.left_out_modules import CheckpointFormat, LeftOut, ModuleNames

_LEFT_OUT = AliasChoices("modules_to_not_convert", "ignored_layers", "exclude_modules", "ignore")


class _Method(BaseModel):
    """One way of quantising; ``quant_method`` names it."""

    model_config = ConfigDict(defer_build=True)

    left_out: list[str] | None = Field(None, validation_alias=_LEFT_OUT)

    def format(self) -> CheckpointFormat:
        """What the checkpoint holds; raises ``ValueError`` saying what was expected."""
        raise NotImplementedError

    def _left_out(self) -> LeftOut:
        return LeftOut(ModuleNames.of(self.left_out or ()))


class _Scaled(_Method):
    """Formats of a keyword: fp8 of the Transformers library or of vLLM, FBGEMM's fp8 of rows, GPT-OSS's mxfp4."""

    quant_method: Literal["fp8", "fbgemm_fp8", "mxfp4"]
    weight_block_size: tuple[Literal[128], Literal[128]] | None = Field(None, strict=False)

    def format(self) -> CheckpointFormat:
        """Blocks of 128 x 128 share a scale, or rows, or all of a matrix."""
        name = {"fp8": "fp8", "fbgemm_fp8": "fp8-channel", "mxfp4": "mxfp4"}[self.quant_method]
        # Of GPT-OSS the format itself is of experts alone, whatever else is listed.
        left_out = LeftOut() if name == "mxfp4" else self._left_out()
        return CheckpointFormat("fp8-block" if self.weight_block_size else name, left_out=left_out)


class _Grouped(_Method):
    """Integers whose groups of inputs share a scale and a zero point: AWQ, and GPTQ also as AutoRound writes it."""

    quant_method: Literal["awq", "gptq", "auto-round"]
    bits: Literal[2, 3, 4, 8] = Field(validation_alias=AliasChoices("bits", "w_bit"))
    group_size: Annotated[int, Field(ge=-1)] = Field(128, validation_alias=AliasChoices("group_size", "q_group_size"))
    lm_head: Literal[False] = False
    dynamic: dict[str, Any] | None = None
    extra_config: None = None

    def format(self) -> CheckpointFormat:
        """A zero point is stored even where it is the same for all."""
        for pattern in self.dynamic or ():
            if not pattern.startswith("-:"):
                raise ValueError(
                    "patterns that leave modules out (-:), as other formats beside the first are not known"
                )
        dynamic = (f"re:{pattern.removeprefix('-:')}" for pattern in self.dynamic or ())
        names = ModuleNames.of([*(self.left_out or ()), *dynamic])
        return CheckpointFormat(_integers(self.bits, self.group_size, symmetric=False), left_out=LeftOut(names))


class _TensorScheme(BaseModel):
    """One kind of numbers of compressed-tensors."""

    model_config = ConfigDict(defer_build=True)

    num_bits: int
    type: Literal["int", "float"]
    strategy: Literal["tensor", "channel", "token", "group", "tensor_group", "block"] | None = None
    group_size: int | None = None
    block_structure: list[int] | None = None
    symmetric: bool = True

    @property
    def grain(self) -> str:
        """What shares a scale; groups where a size is stated alone."""
        return self.strategy or ("group" if self.group_size else "tensor")


class _SchemeGroup(BaseModel):
    targets: list[str] = Field(default=["Linear"])
    weights: _TensorScheme
    input_activations: _TensorScheme | None = None

    def name(self) -> str:
        """The format of the weights; raises ``ValueError`` for one that is not known."""
        weights, inputs = self.weights, self.input_activations
        kind = weights.type, weights.num_bits
        same_inputs = inputs is not None and (inputs.type, inputs.num_bits) == kind
        if kind == ("float", 8) and same_inputs:
            blocks = weights.block_structure in (None, [128, 128])
            known = {"tensor": "fp8", "channel": "fp8-channel", "block": "fp8-block" if blocks else None}
            if found := known.get(weights.grain):
                return found
        if kind == ("float", 4) and same_inputs and weights.group_size in (None, 16):
            return "nvfp4"
        if kind == ("float", 4) and weights.group_size == 32:
            return "mxfp4"
        if kind == ("int", 8) and same_inputs and weights.grain in ("channel", "tensor"):
            return "int8"
        if weights.type == "int" and weights.num_bits in (2, 3, 4, 8) and inputs is None:
            size = -1 if weights.grain == "channel" else weights.group_size or 0
            if size:
                return _integers(weights.num_bits, size, weights.symmetric)
        raise ValueError(
            "fp8 with fp8 activations (by tensor, channel or blocks of 128 x 128), int8 with int8 activations, nvfp4 "
            "with fp4 activations, mxfp4, or integers of 2, 3, 4 or 8 bits alone, by group or channel"
        )


class _CompressedTensors(_Method):
    """compressed-tensors, as llm-compressor writes it."""

    quant_method: Literal["compressed-tensors"]
    config_groups: dict[str, _SchemeGroup] = Field(min_length=1)
    kv_cache_scheme: _TensorScheme | None = None

    def format(self) -> CheckpointFormat:
        """All groups must be of one format; those of GPT-OSS's mxfp4 are of experts alone."""
        names = sorted({group.name() for group in self.config_groups.values()})
        if len(names) > 1:
            raise ValueError(f"groups of one format, not of {' and '.join(names)}")
        targets = [target for group in self.config_groups.values() for target in group.targets]
        only = None if "Linear" in targets else ModuleNames.of(targets)
        left_out = replace(self._left_out(), only=only)
        return CheckpointFormat(names[0], _kv_dtype(self.kv_cache_scheme), left_out)


_MODELOPT_FORMATS = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8-channel",
    "FP8_PB_WO": "fp8-block",
    "FP8_BLOCK_SCALES": "fp8-block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_AWQ": "int4",
    "INT4_AWQ": "int4",
    "W8A16": "int8-sym-channel",
    "W4A16": "int4-sym-g128",
    "INT8_SQ": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
}


class _ModelOpt(_Method):
    """NVIDIA's ModelOpt and TensorRT-LLM, whose keys stand beside ``quant_method`` or below ``quantization``."""

    quant_method: Literal["modelopt", "modelopt_fp4", "modelopt_fp8"]
    quant_algo: str
    group_size: PositiveInt | None = None
    kv_cache_quant_algo: Literal["FP8", "INT8", "NVFP4", "NONE"] | None = None
    kv_cache_scheme: _TensorScheme | Literal["FP8"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_level(cls, given: Any) -> Any:
        inner = given.get("quantization") if isinstance(given, Mapping) else None
        return given | inner if isinstance(inner, Mapping) else given

    @field_validator("quant_algo")
    @classmethod
    def _known(cls, algorithm: str) -> str:
        if algorithm not in _MODELOPT_FORMATS:
            raise ValueError(f"one of {', '.join(sorted(_MODELOPT_FORMATS))}")
        return algorithm

    def format(self) -> CheckpointFormat:
        """Integers may state how many inputs share a scale."""
        name = _MODELOPT_FORMATS[self.quant_algo]
        if name in ("int4", "int4-sym-g128") and self.group_size:
            name = _integers(4, self.group_size, symmetric=name != "int4")
        if self.kv_cache_quant_algo == "NVFP4":
            raise ValueError("kv_cache_quant_algo FP8, INT8 or none, as a KV cache in nvfp4 is not known")
        scheme = self.kv_cache_scheme
        stated = "fp8" if isinstance(scheme, str) else _kv_dtype(scheme)
        kv_cache = {"FP8": "fp8", "INT8": "int8"}.get(self.kv_cache_quant_algo or "", stated)
        return CheckpointFormat(name, kv_cache, self._left_out())


class _Holder(BaseModel):
    """Stands where the configuration does, so that errors name ``quantization_config``."""

    model_config = ConfigDict(defer_build=True)

    quantization_config: Annotated[
        _Scaled | _Grouped | _CompressedTensors | _ModelOpt, Field(discriminator="quant_method")
    ]


def read_checkpoint_format(keys: Mapping[str, Any], source: str) -> CheckpointFormat:
    """The format that ``quantization_config`` states; ``source`` goes before the field in errors.

    Raises ``InputError`` for a method or a format that is not known.
    """
    if "quant_algo" in keys:
        keys = {"quant_method": "modelopt", **keys}  # which ModelOpt did not always write
    try:
        method = _Holder.model_validate({"quantization_config": dict(keys)}).quantization_config
    except ValidationError as error:
        raise explain(error, _Holder, source) from None
    try:
        return method.format()
    except ValueError as error:
        shown = keys.get("quant_method")
        raise InputError(f"{source}quantization_config", shown, str(error)) from None


def modelopt_keys(document: Any, path: str) -> dict[str, Any]:
    """The keys of ``hf_quant_config.json`` as ``quantization_config`` would have them; none if no weight is quantised.

    Raises ``FileError`` for a document of another form.
    """
    keys = document.get("quantization") if isinstance(document, Mapping) else None
    if not isinstance(keys, Mapping):
        raise FileError(path, "expected a JSON object with an object called quantization")
    return {"quant_method": "modelopt", **keys} if keys.get("quant_algo") else {}


def _integers(bits: int, group_size: int, symmetric: bool) -> str:
    if (bits, group_size, symmetric) == (4, 128, False):
        return "int4"
    grain = "channel" if group_size < 0 else f"g{group_size}"
    return f"int{bits}{'-sym' if symmetric else ''}-{grain}"


def _kv_dtype(scheme: _TensorScheme | None) -> str | None:
    if scheme is None:
        return None
    if scheme.num_bits != 8:
        raise ValueError("a KV cache of 8 bits")
    return "fp8" if scheme.type == "float" else "int8"
