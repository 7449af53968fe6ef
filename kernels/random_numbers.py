"""Random numbers that depend on nothing but what they are for: seed, request, position, purpose and token.

Philox-4x32 with ten rounds (Salmon et al., SC 2011): the key is the seed, the counter is (token / 4, position, request,
purpose), and each counter gives four words of 32 bits, one for each of four successive tokens. A draw is therefore the
same in any batch, and is made again at will. Requests and positions count up to 2**32.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

SAMPLE, ACCEPT, RESAMPLE = 0, 1, 2
"""Purposes: sampling a token, accepting a drafted one, sampling after a rejection or after all drafts."""
_MASK = 0xFFFFFFFF


def random_words(
    seeds: torch.Tensor, requests: torch.Tensor, positions: torch.Tensor, purpose: int, tokens: int
) -> torch.Tensor:
    """Words [rows, tokens], as int64 of 32 bits, for rows of ``seeds``, ``requests`` and ``positions`` [rows]."""
    counters = (tokens + 3) // 4
    key = seeds.long()[:, None]
    first = torch.arange(counters, device=seeds.device)[None, :]
    position, request = (each.long().to(seeds.device)[:, None] & _MASK for each in (positions, requests))
    words = philox((first, position, request, torch.full_like(key, purpose)), (key & _MASK, (key >> 32) & _MASK))
    return torch.stack(words, dim=2).flatten(1)[:, :tokens]


def philox(counter: Sequence[torch.Tensor], key: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Four words, each an int64 tensor below 2**32, of four counter words and two key words."""
    c0, c1, c2, c3 = torch.broadcast_tensors(*counter)
    k0, k1 = key
    for _ in range(10):
        high_a, low_a = _product(0xD2511F53, c0)
        high_b, low_b = _product(0xCD9E8D57, c2)
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, low_b, high_a ^ c3 ^ k1, low_a
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    return c0, c1, c2, c3


def _product(multiplier: int, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The high and the low word of a product of two words, by halves: it may exceed what int64 holds."""
    low = (words & 0xFFFF) * multiplier
    high = (words >> 16) * multiplier + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)


def uniforms(words: torch.Tensor) -> torch.Tensor:
    """Float64 numbers in [0, 1), of the 24 highest bits: float32 holds them exactly."""
    return (words >> 8).double() * 2.0**-24


def exponentials(words: torch.Tensor) -> torch.Tensor:
    """Float64 exponential variates of mean 1."""
    return -torch.log1p(-(words.double() + 0.5) * 2.0**-32)


@triton.jit
def random_words_kernel(
    seeds, requests, positions, first, purpose: tl.constexpr, rows: tl.constexpr, block: tl.constexpr
):
    """Words [rows, block] for tokens from ``first``, a multiple of 4; seeds, requests and positions are [rows]."""
    counters: tl.constexpr = block // 4
    c0 = (tl.zeros((rows, counters), tl.int32) + (first // 4 + tl.arange(0, counters))[None, :]).to(tl.uint32)
    zeros = tl.zeros((rows, counters), tl.uint32)
    c1 = zeros + positions.to(tl.uint32)[:, None]
    c2 = zeros + requests.to(tl.uint32)[:, None]
    w0, w1, w2, w3 = tl.philox(seeds[:, None], c0, c1, c2, zeros + purpose)
    return tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), (rows, block))


@triton.jit
def uniforms_kernel(words):
    """Float32 numbers in [0, 1), of the 24 highest bits."""
    return (words >> 8).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def exponentials_kernel(words):
    """Float32 exponential variates, -log(1 - v), fine where they are small: in a race these win; none is infinite.

    ``log(u) * v / (1 - u)`` with ``u = 1 - v`` as rounded cancels the error of that rounding (Kahan's log1p).
    """
    v = words.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    u = tl.maximum(1.0 - v, 1.1641532182693481e-10)
    return tl.where(u == 1.0, v, -tl.log(u) * v / tl.maximum(1.0 - u, 1e-30))
