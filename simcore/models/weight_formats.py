"""Formats in which weights are stored: what a matrix takes, and in which numbers the tensor cores multiply."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from simcore.core.errors import UnknownNameError

ACTIVATION_BYTES = 2.0
"""Activations travel in 16 bits."""
ONE_SCALE = 0
"""A scale group as long as the matrix."""


class Role(Enum):
    """What a tensor is for, as far as its precision or its use by a token depends on it."""

    INPUT_EMBEDDING = "input embedding"
    HEAD = "head"
    ATTENTION = "attention"
    ATTENTION_OUTPUT = "attention output"
    LINEAR = "linear"
    EXPERT = "expert"
    ROUTER = "router"
    GATE = "gate"
    VECTOR = "vector"


MATRICES = frozenset({Role.ATTENTION, Role.ATTENTION_OUTPUT, Role.LINEAR, Role.EXPERT})
"""The matrices of layers; "linear" ones are those of dense blocks and shared experts.

Not among them: the router, and gates of a number per head or per token (``in_proj_ba`` of linear attention,
``shared_expert_gate``), which published checkpoints leave in 16 bits.
"""
EXPERTS = frozenset({Role.EXPERT})


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """One format of the matrices of layers; whatever else a checkpoint holds stays in ``others_bytes`` each.

    A number takes ``bits``; each group of ``scale_rows`` x ``scale_columns`` (output x input; ``ONE_SCALE`` for all)
    has a scale of ``scale_bits``, zero point included. Activations are brought to ``compute_dtype`` where the
    accelerator multiplies in it, else weights are widened to 16 bits on the way (weight-only). Matrices of roles other
    than those in ``of`` keep 16 bits. ``kernels`` names the format whose kernels are the same, itself if empty.
    """

    name: str
    bits: float
    compute_dtype: str
    scale_bits: int = 0
    scale_rows: int = ONE_SCALE
    scale_columns: int = ONE_SCALE
    others_bytes: int = 2
    of: frozenset[Role] = MATRICES
    quantises_activations: bool = False
    kernels: str = ""

    def matrix_bytes(self, rows: int, columns: int) -> int:
        """Bytes of one matrix with its scales, rounded up."""
        bits = rows * columns * self.bits
        if self.scale_bits:
            bits += _groups(rows, self.scale_rows) * _groups(columns, self.scale_columns) * self.scale_bits
        return -int(-bits // 8)

    def bytes_per_weight(self, rows: int, columns: int) -> float:
        """The same, per number."""
        return self.matrix_bytes(rows, columns) / (rows * columns)


def _groups(length: int, group: int) -> int:
    return -(-length // group) if group else 1


WEIGHT_FORMATS: dict[str, WeightFormat] = {
    weight_format.name: weight_format
    for weight_format in (
        WeightFormat("bf16", 16, "bf16"),
        WeightFormat("fp16", 16, "fp16"),
        WeightFormat("fp32", 32, "fp32", others_bytes=4),
        # One fp32 scale per matrix (NVIDIA's and vLLM's per-tensor checkpoints).
        WeightFormat("fp8", 8, "fp8", 32, quantises_activations=True),
        # One fp32 scale per output channel, activations scaled per token (compressed-tensors "FP8_DYNAMIC").
        WeightFormat("fp8-channel", 8, "fp8", 32, scale_rows=1, quantises_activations=True),
        # One fp32 scale per 128 x 128 numbers (DeepSeek-V3, arXiv:2412.19437, section 3.3.2).
        WeightFormat("fp8-block", 8, "fp8", 32, scale_rows=128, scale_columns=128, quantises_activations=True),
        # W8A8: one fp32 scale per output channel (SmoothQuant, arXiv:2211.10438).
        WeightFormat("int8", 8, "int8", 32, scale_rows=1, quantises_activations=True),
        # Weight-only, a 16-bit scale and a 4-bit zero point per 128 inputs (GPTQ, arXiv:2210.17323; AWQ, 2306.00978).
        WeightFormat("int4", 4, "bf16", 20, scale_rows=1, scale_columns=128),
        # An 8-bit scale per 16 inputs (NVIDIA's NVFP4).
        WeightFormat("nvfp4", 4, "fp4", 8, scale_rows=1, scale_columns=16, quantises_activations=True),
        # The same but for the projections to queries, keys and values: nvidia/DeepSeek-R1-0528-FP4-v2, whose model card
        # says that it quantises the output projection too; checkpoints before it leave all of attention out.
        WeightFormat(
            "nvfp4-no-qkv",
            4,
            "fp4",
            8,
            scale_rows=1,
            scale_columns=16,
            of=MATRICES - {Role.ATTENTION},
            quantises_activations=True,
            kernels="nvfp4",
        ),
        # The same of routed experts alone (model cards of Kimi-K2.5-NVFP4's successors, which say that it is so split).
        WeightFormat(
            "nvfp4-experts",
            4,
            "fp4",
            8,
            scale_rows=1,
            scale_columns=16,
            of=EXPERTS,
            quantises_activations=True,
            kernels="nvfp4",
        ),
        # Weight-only and symmetric, a 16-bit scale per 32 inputs, as Kimi-K2.5 is published (compressed-tensors).
        WeightFormat("int4-experts", 4, "bf16", 16, scale_rows=1, scale_columns=32, of=EXPERTS, kernels="int4"),
        # An 8-bit scale per 32 inputs, that is 4.25 bits each (OCP Microscaling Formats v1.0), as GPT-OSS is published.
        WeightFormat("mxfp4", 4, "fp4", 8, scale_rows=1, scale_columns=32, of=EXPERTS),
    )
}

_INTEGERS = re.compile(r"int(?P<bits>[2348])(?P<symmetric>-sym)?-(?:g(?P<group>[1-9][0-9]*)|channel)")

WeightFormatName = Literal[
    "bf16",
    "fp16",
    "fp32",
    "fp8",
    "fp8-channel",
    "fp8-block",
    "int8",
    "int4",
    "int4-experts",
    "nvfp4",
    "nvfp4-no-qkv",
    "nvfp4-experts",
    "mxfp4",
]


def weight_format(name: str) -> WeightFormat:
    """The format of this name; raises ``UnknownNameError`` for any other.

    Beside the formats listed there are integers as checkpoints may have them: "int4-g64" is weight-only, with a 16-bit
    scale and a zero point per 64 inputs; "int8-sym-channel" has no zero points and a scale per output channel.
    """
    if name in WEIGHT_FORMATS:
        return WEIGHT_FORMATS[name]
    integers = _INTEGERS.fullmatch(name)
    if integers is None:
        raise UnknownNameError("precision.weights", name, tuple(WEIGHT_FORMATS))
    bits, symmetric, group = int(integers["bits"]), integers["symmetric"], integers["group"]
    return WeightFormat(
        name,
        bits,
        "bf16",
        16 if symmetric else 16 + bits,
        scale_rows=1,
        scale_columns=int(group) if group else ONE_SCALE,
        kernels="int4" if bits == 4 else "",
    )
