"""What the loops of decode kernels are made of: block ids of a tile of tokens, and a step of the online softmax."""

import triton
import triton.language as tl


@triton.jit
def load_blocks(block_tables, start, length, block_size: tl.constexpr, tile_tokens: tl.constexpr):
    """The blocks that a tile of tokens lies in: one where it fits into a block, else one per token.

    Loops load those of the next tile while they work on this one. Then the addresses of a tile are known when its loads
    are issued, several tiles ahead, and do not wait for another load.
    """
    if block_size % tile_tokens == 0:
        token = start
    else:
        token = start + tl.arange(0, tile_tokens)
    return tl.load(block_tables + token // block_size, mask=token < length, other=0)


@triton.jit
def slots_in_blocks(start, block_size: tl.constexpr, tile_tokens: tl.constexpr):
    """The places of a tile of tokens within their blocks."""
    if block_size % tile_tokens == 0:
        slots = start % block_size + tl.arange(0, tile_tokens)
    else:
        slots = (start + tl.arange(0, tile_tokens)) % block_size
    return slots


@triton.jit
def softmax_step(logits, highest, weight_sum):
    """Take a tile of logits [rows, tokens] in base 2 into the online softmax (Milakov and Gimelshein, 2018).

    Returns the weights of the tile relative to the new highest logit, by what earlier sums are to be multiplied, the
    new highest logit, and the new sum of weights.
    """
    higher = tl.maximum(highest, tl.max(logits, 1))
    rescale = tl.exp2(highest - higher)
    weights = tl.exp2(logits - higher[:, None])
    return weights, rescale, higher, weight_sum * rescale + tl.sum(weights, 1)
