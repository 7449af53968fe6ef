"""The number formats of a scenario."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.memory.kv_bytes import CHANNEL_GROUP
from simcore.models.weight_formats import WeightFormatName
from simcore.workload.config.section import Section


class Precision(Section):
    """Number formats of weights and of the KV cache."""

    weights: Literal["auto", WeightFormatName] = "auto"
    """Format of the weights. ``auto``: as the model was published."""
    kv_cache: Literal["auto", "bf16", "fp16", "fp32", "fp8", "int8", "int4"] = "auto"
    """``bf16``, ``fp16``, ``fp32``, ``fp8``, ``int8`` or ``int4``. ``auto``: as in the checkpoint, else ``bf16``."""
    kv_scales: Literal["auto", "tensor", "token", "token-head", "channel-group"] = "auto"
    """What shares a scale of a quantised KV cache: ``tensor``, ``token``, ``token-head`` or ``channel-group``."""
    kv_group_size: Annotated[int, Field(ge=1, le=1024)] = CHANNEL_GROUP
    """Numbers that share a scale under ``channel-group``: tokens of a key channel, channels of a value."""
