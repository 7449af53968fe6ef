"""Four-bit weights: the layout that ``w4a16`` reads, and how GPTQ's and AWQ's are turned into it at load time.

A block of 128 input channels of one output channel is 16 words of 32 bits, side by side: four for each of the four
threads that share a row of a tensor-core operand, one for every 32 channels. Thread ``l`` holds channels ``2 l`` and
``2 l + 1`` of every eight; in its word of 32 channels, nibbles ``j`` and ``j + 4`` are its two of the ``j``-th eight,
so that both sit at the same place of the two halves of a word. A word of scales and zeros has the scale, as fp16, in
its low half and the zero point in its high half.
"""

from dataclasses import dataclass

import torch

from kernels.errors import require_form

BLOCK_K = 128
WORDS = 16
_BLOCK_SHAPE = (4, 4, 4, 2)
"""Channels of a block: 32s, eights of these, threads, two of each."""
GROUP_SIZES = (32, 64, 128)
_AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)
_SYMMETRIC_ZERO = 8


@dataclass(frozen=True, slots=True)
class Int4Weights:
    """Weights ``[k, n]`` of four bits, ``(q - zero) * scale`` with one scale and zero per output channel and group.

    ``words`` is int32 ``[k / 128, n, 16]`` and ``scales_and_zeros`` int32 ``[k / group_size, n]``, where ``k`` is
    rounded up to whole blocks with weights that are zero. ``arrivals``, int32 ``[n]``, is zero between launches: those
    that split ``k`` count in it, so two of them on the same weights must not run at the same time.
    """

    words: torch.Tensor
    scales_and_zeros: torch.Tensor
    arrivals: torch.Tensor
    group_size: int
    k: int

    @property
    def n(self) -> int:
        """Output channels."""
        return self.words.shape[1]


def pack_int4(quantised: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None = None) -> Int4Weights:
    """Weights from ``quantised`` [k, n] (0 to 15), ``scales`` and ``zeros`` [k / group, n] (None: all 8).

    The scales must be exact in fp16, as those of GPTQ and AWQ checkpoints are. Raises ``ValueError`` where one is not,
    and ``UnsupportedFormError`` for a group size that no kernel has.
    """
    k, n = quantised.shape
    group_size = k // scales.shape[0]
    require_form("w4a16", "group size", group_size, GROUP_SIZES)
    half_scales = scales.to(torch.float16)
    if not torch.equal(half_scales.double(), scales.double()):
        raise ValueError("scales of int4 weights must be exact in fp16; these are not")
    if zeros is None:
        zeros = torch.full_like(half_scales, _SYMMETRIC_ZERO, dtype=torch.int32)

    blocks = -(-k // BLOCK_K)
    padded = torch.zeros((blocks * BLOCK_K, n), dtype=torch.int32, device=quantised.device)
    padded[:k] = quantised
    channels = padded.view(blocks, *_BLOCK_SHAPE, n).permute(0, 5, 3, 1, 4, 2)  # thread, 32s, two, eights
    nibbles = channels.reshape(blocks, n, WORDS, 8)
    words = torch.zeros((blocks, n, WORDS), dtype=torch.int32, device=quantised.device)
    for nibble in range(8):
        words |= nibbles[..., nibble] << (4 * nibble)

    both = torch.zeros((blocks * BLOCK_K // group_size, n), dtype=torch.int32, device=quantised.device)
    both[: len(scales)] = (zeros.int() << 16) | (half_scales.view(torch.int16).int() & 0xFFFF)
    arrivals = torch.zeros(n, dtype=torch.int32, device=quantised.device)
    return Int4Weights(words, both, arrivals, group_size, k)


def from_gptq(
    qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor | None = None, *, stored_zero_offset: int = 1
) -> Int4Weights:
    """Weights from a GPTQ checkpoint.

    ``qweight`` is int32 [k / 8, n], ``scales`` [k / group, n], ``qzeros`` int32 [k / group, n / 8]. The lowest nibble
    is the first input channel (of ``qweight``) or output channel (of ``qzeros``). AutoGPTQ's format stores each zero
    point less one, which ``stored_zero_offset`` adds back; the "v2" format wants 0. Input channels must be in order: a
    checkpoint with ``desc_act`` has to be permuted first. (Layouts recalled from AutoGPTQ's code.)
    """
    quantised = _nibbles(qweight).permute(0, 2, 1).reshape(-1, qweight.shape[1])
    zeros = None if qzeros is None else _nibbles(qzeros).flatten(1) + stored_zero_offset
    return pack_int4(quantised, scales, zeros)


def from_awq(qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor | None = None) -> Int4Weights:
    """Weights from an AWQ checkpoint.

    ``qweight`` is int32 [k, n / 8], ``scales`` [k / group, n], ``qzeros`` int32 [k / group, n / 8]. Nibble ``i`` of a
    word is its output channel 0, 2, 4, 6, 1, 3, 5, 7. (Layout recalled from AutoAWQ's code.)
    """
    inverse = [_AWQ_COLUMNS.index(column) for column in range(8)]
    quantised = _nibbles(qweight)[..., inverse].flatten(1)
    zeros = None if qzeros is None else _nibbles(qzeros)[..., inverse].flatten(1)
    return pack_int4(quantised, scales, zeros)


def _nibbles(words: torch.Tensor) -> torch.Tensor:
    """The eight nibbles of each word, lowest first, as a new last dimension."""
    shifts = torch.arange(0, 32, 4, dtype=torch.int32, device=words.device)
    return (words[..., None] >> shifts) & 0xF


def dequantise_int4(weights: Int4Weights) -> torch.Tensor:
    """The weights [k, n], exactly, in float64."""
    nibbles = _nibbles(weights.words).unflatten(3, (2, 4)).unflatten(2, (4, 4))  # ..., thread, 32s, two, eights
    quantised: torch.Tensor = nibbles.permute(0, 3, 5, 2, 4, 1).reshape(-1, weights.n)[: weights.k]
    scales = (weights.scales_and_zeros & 0xFFFF).to(torch.int16).view(torch.float16).double()
    zeros = weights.scales_and_zeros >> 16
    group = torch.arange(weights.k, device=quantised.device) // weights.group_size
    return (quantised - zeros[group]).double() * scales[group]
