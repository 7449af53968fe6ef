"""What the formats of weights, activations and KV caches make of numbers: matrices in, what they would be read as out.

A scale is shared by a tile of ``rows`` x ``columns``: 1 x width is a scale per token (or per output channel, of
weights), height x 1 one per channel, 1 x 32 one per group of 32. Codes round half to even.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Minifloat:
    """A small float without infinities: bits of its mantissa, exponent of its least normal number, largest number."""

    mantissa_bits: int
    least_exponent: int
    largest: float

    def nearest(self, x: Matrix) -> Matrix:
        """The nearest numbers of the format; beyond the largest, that."""
        _, exponent = np.frexp(x)
        step_exponent = np.maximum(exponent - 1, self.least_exponent) - self.mantissa_bits
        rounded = np.ldexp(np.round(np.ldexp(x, -step_exponent)), step_exponent)
        return np.clip(rounded, -self.largest, self.largest)


E4M3 = Minifloat(3, -6, 448.0)
"""fp8 e4m3 (Micikevicius et al., 2022)."""
E2M1 = Minifloat(1, 0, 6.0)
"""fp4 e2m1 of the OCP microscaling formats."""


def _tiles(x: Matrix, rows: int, columns: int) -> Matrix:
    height, width = x.shape
    return x.reshape(height // rows, rows, width // columns, columns)


def _peaks(tiles: Matrix) -> Matrix:
    return np.maximum(np.abs(tiles).max(axis=(1, 3), keepdims=True), 1e-30)


def integer(x: Matrix, bits: int, rows: int, columns: int) -> Matrix:
    """Symmetric integers: the largest magnitude of a tile is the largest code, 7 or 127; float32 scales."""
    tiles = _tiles(x, rows, columns)
    scale = _peaks(tiles) / (2 ** (bits - 1) - 1)
    return (np.round(tiles / scale) * scale).reshape(x.shape)


def integer_with_zero_point(x: Matrix, bits: int, rows: int, columns: int) -> Matrix:
    """Integers from 0 that span a tile from its least to its largest number, with an integer that stands for zero."""
    tiles = _tiles(x, rows, columns)
    least = np.minimum(tiles.min(axis=(1, 3), keepdims=True), 0.0)
    scale = np.maximum((np.maximum(tiles.max(axis=(1, 3), keepdims=True), 0.0) - least) / (2**bits - 1), 1e-30)
    zero = np.round(-least / scale)
    return ((np.clip(np.round(tiles / scale) + zero, 0, 2**bits - 1) - zero) * scale).reshape(x.shape)


def fp8(x: Matrix, rows: int, columns: int) -> Matrix:
    """fp8 e4m3: the largest magnitude of a tile is 448; float32 scales."""
    tiles = _tiles(x, rows, columns)
    scale = _peaks(tiles) / E4M3.largest
    return (E4M3.nearest(tiles / scale) * scale).reshape(x.shape)


def mxfp4(x: Matrix) -> Matrix:
    """fp4 in groups of 32 whose scale is a power of two, two below that of the largest magnitude (OCP MX v1.0)."""
    tiles = _tiles(x, 1, 32)
    scale = np.exp2(np.frexp(_peaks(tiles))[1] - 3.0)
    return (E2M1.nearest(tiles / scale) * scale).reshape(x.shape)


def nvfp4(x: Matrix) -> Matrix:
    """fp4 in groups of 16 with fp8 e4m3 scales, and one float32 scale of all."""
    tiles = _tiles(x, 1, 16)
    of_all = np.abs(x).max() / (E2M1.largest * E4M3.largest)
    scale = np.maximum(E4M3.nearest(_peaks(tiles) / E2M1.largest / of_all), 2.0**-9) * of_all
    return (E2M1.nearest(tiles / scale) * scale).reshape(x.shape)


def smoothing(activations: Matrix, weights: Matrix, alpha: float) -> NDArray[np.float64]:
    """What SmoothQuant divides channels of activations by and multiplies those of weights (Xiao et al., 2023, eq. 4).

    ``activations`` [tokens, channels] are those it is calibrated on, ``weights`` are [outputs, channels].
    """
    return np.abs(activations).max(axis=0) ** alpha / np.abs(weights).max(axis=0) ** (1 - alpha)
