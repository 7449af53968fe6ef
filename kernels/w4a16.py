"""Weights of four bits times activations of sixteen: the GEMM of GPTQ and AWQ models.

At few tokens the weights are all that is read, and turning them into numbers is what can stand in the way: converting
integers runs at a quarter of the rate of logic. So a nibble ``q`` is put into the mantissa of a constant, two at a time
(Kim et al., "Who Says Elephants Can't Run", 2022): ``0x6400 | q`` is 1024 + q in fp16, ``0x4300 | q`` is 128 + q in
bf16, and one packed addition takes off both the constant and the zero point. The difference is exact; the scale of a
group multiplies its sum, not its weights.

The words are laid out (``int4_layouts``) so that a thread finds in its own words the very elements that it hands to the
tensor core: from the words to the product nothing crosses threads. ``interleaved`` says which order of channels that
is. The warp-group instruction of sm_90 takes 8 successive channels from one row of four threads, two each, then the
next 8; the older one, as Triton gives it joined tensors, takes 16 from the four, four each. Both operands of a product
may be permuted alike, so the second form swaps the middle of every 16 channels of the activations in registers.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.int4_layouts import BLOCK_K, Int4Weights, dequantise_int4
from kernels.launch import LaunchConfig, capability, interpreted, operation

DTYPES = (torch.float16, torch.bfloat16)


def w4a16_reference(a: torch.Tensor, weights: Int4Weights) -> torch.Tensor:
    """``a`` [m, k] times the weights [k, n]; [m, n] in the type of ``a``."""
    return (a.double() @ dequantise_int4(weights)).to(a.dtype)


@triton.constexpr_function
def _word_assembly(dtype):
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
def _unpack(words, zeros, dtype: tl.constexpr, interleaved: tl.constexpr, plain: tl.constexpr):
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
        text: tl.constexpr = _word_assembly(dtype)
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
def _words_of_parts(words, parts: tl.constexpr):
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
def _interleave(activations):
    """Of every 16 channels, the two of a thread in each eight side by side."""
    block_m: tl.constexpr = activations.shape[0]
    depth: tl.constexpr = activations.shape[1]
    eights = activations.reshape(block_m, depth // 16, 2, 4, 2).permute(0, 1, 3, 2, 4)
    return eights.reshape(block_m, depth)


@triton.jit
def _share(units, program):
    """The first unit of a program and that of the next: equal shares, the larger ones first."""
    programs = tl.num_programs(0)
    share, larger = units // programs, units % programs
    first = program * share + tl.minimum(program, larger)
    return first, first + share + (program < larger).to(tl.int32)


@triton.jit
def _owner(units, unit):
    """The program whose share holds a unit."""
    programs = tl.num_programs(0)
    share, larger = units // programs, units % programs
    in_larger = larger * (share + 1)
    return tl.where(unit < in_larger, unit // (share + 1), larger + (unit - in_larger) // share)


@triton.jit
def _w4a16(
    a,
    words,
    scales_and_zeros,
    out,
    partials,
    arrivals,
    m,
    n,
    k,
    blocks,
    a_row_stride,
    group_size: tl.constexpr,
    whole_blocks: tl.constexpr,
    far_rows: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    programs_per_processor: tl.constexpr,
    weights_first: tl.constexpr,
    interleaved: tl.constexpr,
    steps: tl.constexpr,
    parts: tl.constexpr,
    plain: tl.constexpr,
):
    dtype: tl.constexpr = a.dtype.element_ty
    groups: tl.constexpr = 128 // group_size
    part_depth: tl.constexpr = 128 // parts
    shared_tiles: tl.constexpr = programs_per_processor > 0
    tiles_m = tl.cdiv(m, block_m)
    program = tl.program_id(0)
    iterations = blocks // steps
    if shared_tiles:
        units = tiles_m * tl.cdiv(n, block_n) * iterations
        first, last = _share(units, program)
    else:
        first = program * iterations
        last = first + iterations

    tile_rows = tl.arange(0, block_m)
    tile_columns = tl.arange(0, block_n)
    depth = tl.arange(0, part_depth)
    for tile in tl.range(first // iterations, tl.cdiv(last, iterations)):
        begin = tl.maximum(first - tile * iterations, 0)
        end = tl.minimum(last - tile * iterations, iterations)
        rows = tile % tiles_m * block_m + tile_rows
        columns = tile // tiles_m * block_n + tile_columns
        rows_inside = (rows < m)[:, None]
        # Columns past the last read it again: no load needs a mask.
        read = tl.minimum(columns, n - 1)
        block = begin * steps
        # Places within a block stay, and the start of the block moves: one register for all threads.
        a_places = (rows.to(tl.int64) if far_rows else rows)[:, None] * a_row_stride + depth[None, :]
        word_places = read[:, None] * 16 + tl.arange(0, 16)[None, :]
        a_start = a + block * 128
        words_start = words + block.to(tl.int64) * n * 16
        scales_start = scales_and_zeros + block * groups * n
        if weights_first:
            total = tl.zeros((block_n, block_m), tl.float32)
        else:
            total = tl.zeros((block_m, block_n), tl.float32)

        for iteration in tl.range(begin, end):
            for step in tl.static_range(steps):
                words_of_parts = _words_of_parts(tl.load(words_start + word_places), parts)
                for group in tl.static_range(groups):
                    both = tl.load(scales_start + read)
                    scale = (both & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
                    subtotal = tl.zeros_like(total)
                    for part in tl.static_range(group * parts // groups, (group + 1) * parts // groups):
                        inside = rows_inside
                        if not whole_blocks:
                            channels = (iteration * steps + step) * 128 + part * part_depth + depth
                            inside = inside & (channels < k)[None, :]
                        activations = tl.load(a_start + part * part_depth + a_places, mask=inside, other=0.0)
                        if interleaved:
                            activations = _interleave(activations)
                        weights = _unpack(words_of_parts[part], both[:, None], dtype, interleaved, plain)
                        if weights_first:
                            subtotal = tl.dot(weights, activations.trans(), subtotal)
                        else:
                            subtotal = tl.dot(activations, weights.trans(), subtotal)
                    if weights_first:
                        total += subtotal * scale[:, None]
                    else:
                        total += subtotal * scale[None, :]
                    scales_start += n
                a_start += 128
                words_start += n * 16

        if weights_first:
            total = total.trans()
        complete = True
        if shared_tiles:  # noqa: SIM102 (one is known to the compiler, the other not)
            if end - begin < iterations:
                # The last program to arrive adds up the parts of a tile, always in the same order.
                size: tl.constexpr = block_m * block_n
                places = partials + tile_rows[:, None] * block_n + tile_columns[None, :]
                tl.store(places + (2 * program + (begin == 0).to(tl.int32)) * size, total, mask=rows_inside)
                first_program = _owner(units, tile * iterations)
                last_program = _owner(units, (tile + 1) * iterations - 1)
                tl.debug_barrier()
                arrived = tl.atomic_add(arrivals + tile, 1, sem="acq_rel")
                complete = arrived == last_program - first_program
                if complete:
                    total = tl.load(
                        places + (2 * first_program + 1) * size, mask=rows_inside, other=0.0, cache_modifier=".cg"
                    )
                    for next_program in tl.range(first_program + 1, last_program + 1, 4, num_stages=1):
                        # Four loads at once: one after the other they would be waited for.
                        for index in tl.static_range(4):
                            other = next_program + index
                            inside = rows_inside & (other <= last_program)
                            total += tl.load(places + 2 * other * size, mask=inside, other=0.0, cache_modifier=".cg")
                    tl.store(arrivals + tile, 0)
        if complete:
            inside = rows_inside & (columns < n)[None, :]
            tl.store(out + rows.to(tl.int64)[:, None] * n + columns[None, :], total.to(dtype), mask=inside)


_NOMINAL_PROCESSORS = {80: 108, 90: 132, 100: 148}
_LEAST_ITERATIONS = 4


def launch_config(m: int, n: int, k: int, group_size: int, chip: int, processors: int) -> LaunchConfig:
    """The launch for ``m`` tokens on a chip of that compute capability with so many streaming multiprocessors."""
    parts, max_registers, resident = BLOCK_K // group_size, None, 2
    if m <= 32:
        block_m, block_n, warps, stages, weights_first = (16 if m <= 16 else 32), 128, 4, 4, chip == 90
        if chip == 90 and m <= 16 and group_size == BLOCK_K:
            # Halves of a block keep fewer weights in registers at once, so that four programs fit.
            parts, max_registers, resident = 2, 128, 4
    elif chip >= 100:
        # Each group's product takes tensor memory of its own: larger tiles exceed it.
        weights_first = group_size < BLOCK_K
        block_m, block_n, warps, stages = 64, (128 if weights_first else 64), 4, 3
    elif m <= 64 or group_size < BLOCK_K or chip < 90:
        block_m, block_n, warps, stages, weights_first = 64, 128, 8, 4, True
    else:
        block_m, block_n, warps, stages, weights_first = 128, 128, 8, 3, True
    tiles, blocks = triton.cdiv(m, block_m) * triton.cdiv(n, block_n), triton.cdiv(k, BLOCK_K)
    tile_arguments = {
        "block_m": block_m,
        "block_n": block_n,
        "programs_per_processor": resident if tiles < 3 * processors and blocks >= 2 * _LEAST_ITERATIONS else 0,
        "weights_first": weights_first,
        "interleaved": chip < 90 or (chip >= 100 and m <= 32),
        "steps": 1,
        "parts": parts,
    }
    return LaunchConfig(tile_arguments, warps, stages, max_registers)


def programs_of(tiles: int, iterations: int, per_processor: int, processors: int) -> int:
    """How many programs share the iterations of all tiles, each a few at least; where none do, one for each tile."""
    return min(per_processor * processors, max(1, tiles * iterations // _LEAST_ITERATIONS)) if per_processor else tiles


def _check(a: torch.Tensor, weights: Int4Weights) -> None:
    require_form("w4a16", "type", a.dtype, DTYPES)
    require_form("w4a16", "depth", a.shape[1], [weights.k])


@operation(w4a16_reference, _check, strided=("a",))
def w4a16(a: torch.Tensor, weights: Int4Weights, *, config: LaunchConfig | None = None) -> torch.Tensor:
    """``a`` [m, k] (fp16 or bf16) times four-bit weights [k, n]; [m, n] in the type of ``a``, summed in fp32.

    Raises ``UnsupportedFormError`` for other types. Parts of a split ``k`` are added in a fixed order: equal inputs
    give equal outputs.
    """
    (m, k), n = a.shape, weights.n
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if m == 0:
        return out
    if a.stride(1) != 1:
        a = a.contiguous()
    config = config or launch_config(m, n, k, weights.group_size, capability(a.device), _processors(a.device))
    tiles = triton.cdiv(m, config.tiles["block_m"]) * triton.cdiv(n, config.tiles["block_n"])
    blocks, per_processor = weights.words.shape[0], config.tiles["programs_per_processor"]
    if blocks % config.tiles["steps"]:
        raise ValueError(f"steps is {config.tiles['steps']}, but must divide the {blocks} blocks of the depth")
    programs = programs_of(tiles, blocks // config.tiles["steps"], per_processor, _processors(a.device))
    tile_size = config.tiles["block_m"] * config.tiles["block_n"]
    partials = out
    if per_processor:
        partials = torch.empty((programs, 2, tile_size), dtype=torch.float32, device=a.device)
    _w4a16[(programs,)](
        a,
        weights.words,
        weights.scales_and_zeros,
        out,
        partials,
        weights.arrivals,
        m,
        n,
        k,
        blocks,
        a.stride(0),
        group_size=weights.group_size,
        whole_blocks=k % BLOCK_K == 0,
        far_rows=(m + config.tiles["block_m"]) * a.stride(0) >= 2**31,
        **{"plain": interpreted(), **config.arguments()},
    )
    return out


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return _NOMINAL_PROCESSORS[90]
    return torch.cuda.get_device_properties(device).multi_processor_count


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernel, for ahead-of-time compilation: decoding, and two sizes of prefill."""
    forms = []
    large = {90: "wgmma.mma", 100: "tcgen05.mma"}
    for kind, group_size, m, n, k in (
        ("fp16", 128, 16, 28672, 8192),
        ("bf16", 128, 16, 28672, 8192),
        ("bf16", 64, 16, 4096, 14336),
        ("bf16", 32, 32, 2880, 2880),
        ("bf16", 128, 64, 8192, 8192),
        ("fp16", 128, 4096, 8192, 8192),
        ("bf16", 128, 4096, 8192, 8192),
        ("bf16", 32, 4096, 8192, 8192),
    ):
        configs = {chip: launch_config(m, n, k, group_size, chip, _NOMINAL_PROCESSORS[chip]) for chip in CAPABILITIES}
        instructions = large if m > 32 else {80: "mma.sync", 90: "wgmma.mma", 100: "mma.sync"}
        split = any(config.tiles["programs_per_processor"] for config in configs.values())
        types = dict.fromkeys(("words", "scales_and_zeros", "arrivals"), "*i32")
        types |= {"a": f"*{kind}", "out": f"*{kind}", "partials": "*fp32" if split else f"*{kind}"}
        types |= dict.fromkeys(("m", "n", "k", "blocks", "a_row_stride"), "i32")
        constants = {"group_size": group_size, "whole_blocks": k % BLOCK_K == 0, "far_rows": False, "plain": False}
        form = f"{kind} group {group_size} m={m} k={k} n={n}"
        forms.append(CompiledForm(_w4a16, form, types, constants, configs, ("n", "k", "a_row_stride"), instructions))
    return forms
