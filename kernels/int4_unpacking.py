"""Four-bit weights turned into numbers, in registers.

Converting integers runs at a quarter of the rate of logic. So a nibble ``q`` is put into the mantissa of a constant,
two at a time (Kim et al., "Who Says Elephants Can't Run", 2022): ``0x6400 | q`` is 1024 + q in fp16, ``0x4300 | q`` is
128 + q in bf16, and one packed addition takes off both the constant and the zero point. The difference is exact.

The words are laid out (``int4_layouts``) so that a thread finds in its own words the very elements that it hands to the
tensor core: from the words to the product nothing crosses threads. ``interleaved`` says which order of channels that
is. The warp-group instruction of sm_90 takes 8 successive channels from one row of four threads, two each, then the
next 8; the older one, as Triton gives it joined tensors, takes 16 from the four, four each. Both operands of a product
may be permuted alike, so the second form swaps the middle of every 16 channels of the activations in registers.
"""

import triton
import triton.language as tl


@triton.constexpr_function
def word_assembly(dtype):
    """PTX for the nibbles of a word ($8) less the zero point in the high half of $9, as eight 16-bit floats.

    Nibbles ``j`` and ``j + 4`` are $(2 j) and $(2 j + 1), which one register holds.
    """
    text = """{
        .reg .b32 pair, zero, shifted, constant;
        prmt.b32 zero, $9, $9, 0x3232;
    """
    if dtype == tl.bfloat16:
        text += """
        or.b32 zero, zero, 0xC300C300;            // -(128 + zero)
        mov.b32 constant, 0x3F803F80;             // 1: sm_80 has a fused multiply-add of bf16, but no addition
        """
        for j in range(4):
            text += f"""
            shr.b32 shifted, $8, {4 * j};
            lop3.b32 pair, shifted, 0x000F000F, 0x43004300, 0xEA;
            fma.rn.bf16x2 pair, pair, constant, zero;
            mov.b32 {{${2 * j}, ${2 * j + 1}}}, pair;
            """
    else:
        # With four bits below it a nibble is 1024 + 16 q; a sixteenth of that is 64 + q, and needs no shift.
        text += """
        .reg .b32 sixteenth;
        or.b32 zero, zero, 0xE400E400;            // -(1024 + zero)
        mov.b32 constant, 0x63806380;             // 960
        add.f16x2 sixteenth, zero, constant;      // -(64 + zero)
        mov.b32 constant, 0x2C002C00;             // 1 / 16
        """
        for j in (0, 2):
            text += f"""
            shr.b32 shifted, $8, {4 * j};
            lop3.b32 pair, shifted, 0x000F000F, 0x64006400, 0xEA;
            add.f16x2 pair, pair, zero;
            mov.b32 {{${2 * j}, ${2 * j + 1}}}, pair;
            lop3.b32 pair, shifted, 0x00F000F0, 0x64006400, 0xEA;
            fma.rn.f16x2 pair, pair, constant, sixteenth;
            mov.b32 {{${2 * j + 2}, ${2 * j + 3}}}, pair;
            """
    return text + "}"


@triton.jit
def _nibble(words, zeros, nibble: tl.constexpr, dtype: tl.constexpr):
    return ((words >> (4 * nibble)) & 0xF).to(dtype) - (zeros >> 16).to(dtype)


@triton.jit
def unpack(words, zeros, dtype: tl.constexpr, interleaved: tl.constexpr, plain: tl.constexpr):
    """``q - zero`` of words [n, 4 x] as [n, 32 x]. The plain form is for the interpreter, which knows no assembly."""
    block_n: tl.constexpr = words.shape[0]
    depth: tl.constexpr = 8 * words.shape[1]
    zeros = tl.broadcast_to(zeros, words.shape)
    if plain:
        first = tl.join(_nibble(words, zeros, 0, dtype), _nibble(words, zeros, 4, dtype))
        second = tl.join(_nibble(words, zeros, 1, dtype), _nibble(words, zeros, 5, dtype))
        third = tl.join(_nibble(words, zeros, 2, dtype), _nibble(words, zeros, 6, dtype))
        fourth = tl.join(_nibble(words, zeros, 3, dtype), _nibble(words, zeros, 7, dtype))
    else:
        text: tl.constexpr = word_assembly(dtype)
        a, b, c, d, e, f, g, h = tl.inline_asm_elementwise(
            text, "=h,=h,=h,=h,=h,=h,=h,=h,r,r", [words, zeros], (dtype.value,) * 8, is_pure=True, pack=1
        )
        first, second, third, fourth = tl.join(a, b), tl.join(c, d), tl.join(e, f), tl.join(g, h)
    joined = tl.join(tl.join(first, second), tl.join(third, fourth))
    joined = joined.reshape(block_n, 4, depth // 32, 2, 2, 2)  # of 32 channels: pairs, which 32, one, eights, sixteens
    if interleaved:
        joined = joined.permute(0, 2, 5, 1, 4, 3)
    else:
        joined = joined.permute(0, 2, 5, 4, 1, 3)
    return joined.reshape(block_n, depth)


@triton.jit
def words_of_parts(words, parts: tl.constexpr):
    """The words [n, 16] of a block, by successive parts of its channels."""
    block_n: tl.constexpr = words.shape[0]
    # The compiler drops the other branches only where each has its "else".
    if parts == 1:
        return (words,)
    elif parts == 2:  # noqa: RET505
        first, second = words.reshape(block_n, 4, 2, 2).permute(0, 1, 3, 2).split()
        return first.reshape(block_n, 8), second.reshape(block_n, 8)
    else:
        even, odd = words.reshape(block_n, 4, 2, 2).split()
        first, third = even.split()
        second, fourth = odd.split()
        return first, second, third, fourth


@triton.jit
def interleave(activations):
    """Of every 16 channels, the two of a thread in each eight side by side."""
    block_m: tl.constexpr = activations.shape[0]
    depth: tl.constexpr = activations.shape[1]
    eights = activations.reshape(block_m, depth // 16, 2, 4, 2).permute(0, 1, 3, 2, 4)
    return eights.reshape(block_m, depth)
