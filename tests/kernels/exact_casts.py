"""Casts to fp8 as the hardware makes them, for Triton's interpreter, whose own lose the carry of a rounding."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime import interpreter

from kernels.launch import interpreted

FP8_TYPES = [torch.float8_e4m3fn] if interpreted() or torch.cuda.get_device_capability() >= (8, 9) else []


def _to_fp8(values: np.ndarray) -> np.ndarray:
    """Nearest e4m3, ties to even, saturating; float32 in, bytes out."""
    return torch.from_numpy(values.copy()).clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8).numpy()


def _patched(convert: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def convert_float(values: np.ndarray, source: Any, target: Any, rounding: Any) -> np.ndarray:
        if source == tl.float32 and target == tl.float8e4nv:
            return _to_fp8(values)
        return convert(values, source, target, rounding)

    return convert_float


@pytest.fixture
def exact_casts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the interpreter, where it is on, round to fp8 as a GPU does."""
    if interpreted():
        monkeypatch.setattr(interpreter, "_convert_float", _patched(interpreter._convert_float))
