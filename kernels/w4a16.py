"""Weights of four bits times activations of sixteen: the GEMM of GPTQ and AWQ models.

At few tokens the weights are all that is read, and turning them into numbers is what can stand in the way:
``int4_unpacking`` does it. The scale of a group multiplies its sum, not its weights. There too, where tiles are few,
programs share the depth of tiles evenly (Osama et al., Stream-K, 2023, arXiv:2301.03598), and the last to arrive at a
tile adds up its parts.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.int4_layouts import BLOCK_K, Int4Weights, dequantise_int4
from kernels.int4_unpacking import interleave, unpack, words_of_parts
from kernels.launch import LaunchConfig, capability, interpreted, operation

DTYPES = (torch.float16, torch.bfloat16)


def w4a16_reference(a: torch.Tensor, weights: Int4Weights) -> torch.Tensor:
    """``a`` [m, k] times the weights [k, n]; [m, n] in the type of ``a``."""
    return (a.double() @ dequantise_int4(weights)).to(a.dtype)


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
                part_words = words_of_parts(tl.load(words_start + word_places), parts)
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
                            activations = interleave(activations)
                        weights = unpack(part_words[part], both[:, None], dtype, interleaved, plain)
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
