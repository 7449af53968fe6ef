"""Which tokens temperature, top-k and top-p keep, found without a sort.

A token is kept by top-k if fewer than k tokens have a higher logit; among those, by top-p if tokens of a higher logit
have less than p of their probability. Tokens of equal logit stand or fall together, so more than k may be kept; the
most probable ones always are. A top-k of 0 and a top-p of 1 keep all; a logit of minus infinity is never kept. A
temperature of 0 keeps the most probable token alone, the first if several are.

Kernels find the lowest kept logit by bisection: over the bit patterns of floats, of which the order is the order of the
numbers, from one logit that occurs to another, in at most 32 passes over a row.
"""

import torch
import triton
import triton.language as tl


def kept_tokens(
    logits: torch.Tensor, temperatures: torch.Tensor, top_ks: torch.Tensor, top_ps: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether each token [rows, vocabulary] is kept, and its float64 logit divided by the temperature.

    A greedy row has its logits as they are.
    """
    values = logits.double()
    vocabulary = values.shape[1]
    greedy = temperatures == 0
    tokens = torch.arange(vocabulary, device=values.device)
    is_first_peak = tokens == torch.where(values == values.amax(1, True), tokens, vocabulary).amin(1, True)
    scaled = values / torch.where(greedy, 1.0, temperatures.double())[:, None]

    ascending, order = values.sort(dim=1)
    at_or_below = torch.searchsorted(ascending, values, right=True)
    limits = torch.where(top_ks > 0, top_ks, vocabulary)[:, None]
    kept = (vocabulary - at_or_below < limits) & (values > -torch.inf)

    weights = torch.softmax(scaled.masked_fill(~kept, -torch.inf), dim=1)
    from_here_up = weights.gather(1, order).flip(1).cumsum(1).flip(1)
    above = torch.cat([from_here_up, torch.zeros_like(from_here_up[:, :1])], dim=1).gather(1, at_or_below)
    kept &= (above < top_ps.double()[:, None]) | (top_ps >= 1)[:, None]
    return torch.where(greedy[:, None], is_first_peak, kept), scaled


@triton.jit
def bits_in_order(value):
    """A whole number for a float32, in the order of floats."""
    bits = value.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def float_of(ordered):
    """The float32 of a number from ``bits_in_order``."""
    return (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def load_logits(logits, first, vocabulary, block: tl.constexpr):
    """Float32 logits from token ``first`` on; minus infinity beyond the vocabulary."""
    tokens = first + tl.arange(0, block)
    return tl.load(logits + tokens, mask=tokens < vocabulary, other=float("-inf")).to(tl.float32)


@triton.jit
def weight_of(values, peak, inverse_temperature, by_mass: tl.constexpr):
    """Unnormalised probabilities; or one each, to count."""
    if by_mass:
        weight = tl.exp((values - peak) * inverse_temperature)
    else:
        weight = tl.full(values.shape, 1.0, tl.float32)
    return weight


@triton.jit
def weight_from(logits, threshold, vocabulary, peak, inverse_temperature, by_mass: tl.constexpr, block: tl.constexpr):
    """The weight of all tokens from ``threshold`` up, in float64."""
    total = tl.zeros((block,), tl.float32)
    for first in range(0, vocabulary, block):
        values = load_logits(logits, first, vocabulary, block)
        total += tl.where(values >= threshold, weight_of(values, peak, inverse_temperature, by_mass), 0.0)
    return tl.sum(total.to(tl.float64))


@triton.jit
def lowest_kept(logits, low, peak, limit, vocabulary, inverse_temperature, by_mass: tl.constexpr, block: tl.constexpr):
    """The lowest logit whose higher ones weigh less than ``limit``; ``low`` and ``peak`` bound it, and occur."""
    high = peak
    while low < high:
        low_bits = bits_in_order(low).to(tl.int64)
        middle = float_of((low_bits + (bits_in_order(high).to(tl.int64) - low_bits + 1) // 2).to(tl.int32))
        weight = tl.zeros((block,), tl.float32)
        least_above = tl.full((block,), float("inf"), tl.float32)
        most_below = tl.full((block,), float("-inf"), tl.float32)
        for first in range(0, vocabulary, block):
            values = load_logits(logits, first, vocabulary, block)
            above = values >= middle
            weight += tl.where(above, weight_of(values, peak, inverse_temperature, by_mass), 0.0)
            least_above = tl.minimum(least_above, tl.where(above, values, float("inf")))
            most_below = tl.maximum(most_below, tl.where(above, float("-inf"), values))
        if tl.sum(weight.to(tl.float64)) < limit:
            high = tl.max(most_below)
        else:
            low = tl.min(least_above)
    return low


@triton.jit
def lowest_of_both(logits, lowest, peak, top_k, top_p, vocabulary, inverse_temperature, block: tl.constexpr):
    """The lowest logit that top-k and top-p keep; ``lowest`` is the lowest finite one, ``peak`` the highest."""
    threshold = lowest
    if (top_k > 0) & (top_k < vocabulary):
        threshold = lowest_kept(
            logits, threshold, peak, top_k.to(tl.float64), vocabulary, inverse_temperature, False, block
        )
    if top_p < 1.0:
        total = weight_from(logits, threshold, vocabulary, peak, inverse_temperature, True, block)
        limit = total * top_p.to(tl.float64)
        threshold = lowest_kept(logits, threshold, peak, limit, vocabulary, inverse_temperature, True, block)
    return threshold
