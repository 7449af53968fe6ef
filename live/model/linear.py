"""Linear layers in the forms that weights come in: floats, 8-bit with 8-bit activations, 4-bit."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import torch

from kernels.int4_layouts import GROUP_SIZES, Int4Weights, dequantise_int4, pack_int4
from kernels.quantise_rows import quantise_per_token
from kernels.w4a16 import w4a16
from kernels.w8a8 import w8a8
from simcore.core.errors import InputError, UnknownNameError

WEIGHT_FORMATS = ("plain", "w8a8", "fp8", "w4a16")
"""As loaded; int8 or fp8 (e4m3) weights and activations with a scale per channel and per token; 4-bit weights."""
_LARGEST_INT4 = 7


class Multiply(Protocol):
    """How a backend multiplies by a weight in floats: ``x [m, k] @ weight [n, k].T + bias [n]``."""

    def __call__(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """The product [m, n]."""


class Linear(ABC):
    """A matrix that activations [tokens, in] are multiplied by, with a bias or without."""

    @abstractmethod
    def apply(self, x: torch.Tensor, multiply: Multiply) -> torch.Tensor:
        """The product [tokens, out] in the type of ``x``; ``multiply`` is there for weights in floats."""

    @abstractmethod
    def dense(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The weight [out, in] as it counts, in floats, and the bias."""


@dataclass(frozen=True, slots=True)
class FloatLinear(Linear):
    """A weight [out, in] in the type of activations."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None

    def apply(self, x: torch.Tensor, multiply: Multiply) -> torch.Tensor:
        """The backend's GEMM."""
        return multiply(x, self.weight, self.bias)

    def dense(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """As it is."""
        return self.weight, self.bias


@dataclass(frozen=True, slots=True)
class EightBitLinear(Linear):
    """int8 or fp8 codes [out, in] with a float32 scale per output channel; activations are quantised per token."""

    codes: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor | None = None

    def apply(self, x: torch.Tensor, multiply: Multiply) -> torch.Tensor:
        """By ``kernels.w8a8``."""
        codes, scales = quantise_per_token(x, self.codes.dtype)
        return w8a8(codes, self.codes, scales, self.scales, x.dtype, self.bias)

    def dense(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Dequantised, in float32."""
        return self.codes.float() * self.scales[:, None], self.bias


@dataclass(frozen=True, slots=True)
class FourBitLinear(Linear):
    """4-bit weights with a scale per output channel and group of input channels."""

    weights: Int4Weights
    bias: torch.Tensor | None = None

    def apply(self, x: torch.Tensor, multiply: Multiply) -> torch.Tensor:
        """By ``kernels.w4a16``."""
        product = w4a16(x, self.weights)
        return product if self.bias is None else product + self.bias

    def dense(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Dequantised, in float32."""
        return dequantise_int4(self.weights).T.float().contiguous(), self.bias


def check_weight_format(weight_format: str, dtype: torch.dtype) -> None:
    """Raise ``InputError`` for an unknown format, and for a quantised one where activations have 32 bits."""
    if weight_format not in WEIGHT_FORMATS:
        raise UnknownNameError("weight_format", weight_format, WEIGHT_FORMATS)
    if weight_format != "plain" and dtype not in (torch.float16, torch.bfloat16):
        raise InputError(
            "dtype", str(dtype).removeprefix("torch."), f"float16 or bfloat16 with {weight_format} weights"
        )


def make_linear(weight: torch.Tensor, bias: torch.Tensor | None, weight_format: str) -> Linear:
    """A linear layer of a weight [out, in] in floats, rounded to nearest where the format has fewer bits."""
    if weight_format == "plain":
        return FloatLinear(weight, bias)
    if weight_format == "w4a16":
        return FourBitLinear(_in_four_bits(weight), bias)
    code = torch.int8 if weight_format == "w8a8" else torch.float8_e4m3fn
    return EightBitLinear(*quantise_per_token(weight.contiguous(), code), bias)


def _in_four_bits(weight: torch.Tensor) -> Int4Weights:
    """Symmetric, in the largest groups that divide the input channels."""
    width = weight.shape[1]
    group = next((size for size in sorted(GROUP_SIZES, reverse=True) if width % size == 0), None)
    if group is None:
        raise InputError("weight_format", "w4a16", f"another one, as {width} input channels are no multiple of 32")
    grouped = weight.float().unflatten(1, (-1, group))
    scales = (grouped.abs().amax(2, True) / _LARGEST_INT4).to(torch.float16).float().clamp_min(2.0**-14)
    codes = (grouped / scales).round().clamp(-_LARGEST_INT4, _LARGEST_INT4).int() + 8
    return pack_int4(codes.flatten(1).T.contiguous(), scales[..., 0].T.contiguous())
