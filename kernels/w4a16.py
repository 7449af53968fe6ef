"""Weights of four bits times activations of sixteen: the GEMM of GPTQ and AWQ models.

At few tokens the weights are all that is read, and turning them into numbers is what can stand in the way: converting
integers runs at a quarter of the rate of logic. So a nibble ``q`` is put into the mantissa of a constant, two at a time
(Kim et al., "Who Says Elephants Can't Run", 2022): ``0x6400 | q`` is 1024 + q in fp16, ``0x4300 | q`` is 128 + q in
bf16, and one packed addition takes off both the constant and the zero point. The difference is exact; the scale of a
group multiplies its sum, not its weights.
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
def _plane_assembly(plane, dtype):
    """PTX for nibble ``plane`` of two words ($1, $2), less the zero points of $3 and $4, as two 16-bit floats in $0.

    Each result depends on its own word only, so any two elements may be paired. What is equal in the text of several
    planes is computed once: ptxas sees to that.
    """
    nibble = plane % 4
    text = f"""{{
        .reg .b32 pair, zero, constant;
        prmt.b32 pair, $1, $2, {"0x5410" if plane < 4 else "0x7632"};
        prmt.b32 zero, $3, $4, 0x7632;
    """
    if dtype == tl.bfloat16:
        text += f"""
        shr.b32 pair, pair, {4 * nibble};
        lop3.b32 pair, pair, 0x000F000F, 0x43004300, 0xEA;
        or.b32 zero, zero, 0xC300C300;            // -(128 + zero)
        mov.b32 constant, 0x3F803F80;             // 1: sm_80 has a fused multiply-add of bf16, but no addition
        fma.rn.bf16x2 $0, pair, constant, zero;
        """
    elif nibble % 2 == 0:
        text += f"""
        shr.b32 pair, pair, {4 * nibble};
        lop3.b32 pair, pair, 0x000F000F, 0x64006400, 0xEA;
        or.b32 zero, zero, 0xE400E400;            // -(1024 + zero)
        add.f16x2 $0, pair, zero;
        """
    else:
        # With four bits below it the nibble is 1024 + 16 q; a sixteenth of that is 64 + q, and no shift is needed.
        text += f"""
        shr.b32 pair, pair, {4 * (nibble - 1)};
        lop3.b32 pair, pair, 0x00F000F0, 0x64006400, 0xEA;
        or.b32 zero, zero, 0xE400E400;
        mov.b32 constant, 0x63806380;             // 960
        add.f16x2 zero, zero, constant;           // -(64 + zero)
        mov.b32 constant, 0x2C002C00;             // 1 / 16
        fma.rn.f16x2 $0, pair, constant, zero;
        """
    return text + "}"


@triton.jit
def _plane(words, zeros, plane: tl.constexpr, dtype: tl.constexpr, plain: tl.constexpr):
    """One plane, ``q - zero``. The plain form is for the interpreter, which knows no assembly."""
    if plain:
        values = ((words >> (4 * plane)) & 0xF).to(dtype) - (zeros >> 16).to(dtype)
    else:
        text: tl.constexpr = _plane_assembly(plane, dtype)
        values = tl.inline_asm_elementwise(text, "=r,r,r,r,r", [words, zeros], dtype.value, is_pure=True, pack=2)
    return values


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
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    split_k: tl.constexpr,
    weights_first: tl.constexpr,
    plain: tl.constexpr,
):
    dtype: tl.constexpr = a.dtype.element_ty
    groups: tl.constexpr = 128 // group_size
    planes: tl.constexpr = 8 // groups
    tiles_m = tl.cdiv(m, block_m)
    tile_m = tl.program_id(0) % tiles_m
    tile_n = tl.program_id(0) // tiles_m
    part = tl.program_id(1)
    first_block = (blocks * part) // split_k
    last_block = (blocks * (part + 1)) // split_k

    rows = tile_m * block_m + tl.arange(0, block_m)
    columns = tile_n * block_n + tl.arange(0, block_n)
    depth = tl.arange(0, 16)
    rows_inside = (rows < m)[:, None]
    columns_inside = columns < n
    a_pointers = a + rows.to(tl.int64)[:, None] * a_row_stride + (first_block * 128 + depth)[None, :]
    word_pointers = words + (first_block.to(tl.int64) * n + columns)[:, None] * 16 + depth[None, :]
    scale_pointers = scales_and_zeros + first_block * groups * n + columns
    if weights_first:
        total = tl.zeros((block_n, block_m), tl.float32)
    else:
        total = tl.zeros((block_m, block_n), tl.float32)

    for block in tl.range(first_block, last_block):
        block_words = tl.load(word_pointers, mask=columns_inside[:, None], other=0)
        for group in tl.static_range(groups):
            both = tl.load(scale_pointers, mask=columns_inside, other=0)
            scale = (both & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
            subtotal = tl.zeros_like(total)
            for plane in tl.static_range(group * planes, (group + 1) * planes):
                inside = rows_inside
                if not whole_blocks:
                    inside = inside & (block * 128 + plane * 16 + depth < k)[None, :]
                activations = tl.load(a_pointers + plane * 16, mask=inside, other=0.0)
                weights = _plane(block_words, both[:, None], plane, dtype, plain)
                if weights_first:
                    subtotal = tl.dot(weights, activations.trans(), subtotal)
                else:
                    subtotal = tl.dot(activations, weights.trans(), subtotal)
            if weights_first:
                total += subtotal * scale[:, None]
            else:
                total += subtotal * scale[None, :]
            scale_pointers += n
        a_pointers += 128
        word_pointers += n * 16

    if weights_first:
        total = total.trans()
    inside = rows_inside & columns_inside[None, :]
    offsets = rows.to(tl.int64)[:, None] * n + columns[None, :]
    if split_k == 1:
        tl.store(out + offsets, total.to(dtype), mask=inside)
    else:
        # The last program to arrive adds up the parts, always in the same order.
        size = n.to(tl.int64) * m
        tl.store(partials + part * size + offsets, total, mask=inside)
        tl.debug_barrier()
        if tl.atomic_add(arrivals + tl.program_id(0), 1, sem="acq_rel") == split_k - 1:
            total = tl.zeros((block_m, block_n), tl.float32)
            for other in tl.static_range(split_k):
                total += tl.load(partials + other * size + offsets, mask=inside, other=0.0, cache_modifier=".cg")
            tl.store(out + offsets, total.to(dtype), mask=inside)
            tl.store(arrivals + tl.program_id(0), 0)


_NOMINAL_PROCESSORS = {80: 108, 90: 132, 100: 148}
_MAX_SPLIT = 8


def launch_config(m: int, n: int, k: int, group_size: int, chip: int, processors: int) -> LaunchConfig:
    """The launch for ``m`` tokens on a chip of that compute capability with so many streaming multiprocessors."""
    if m <= 32:
        block_m, block_n, warps, stages, weights_first = (16 if m <= 16 else 32), 128, 4, 5, False
    elif chip >= 100:
        # Each plane's product takes tensor memory of its own: larger tiles exceed it.
        block_m, block_n, warps, stages, weights_first = 64, 64, 4, 4, False
    elif m <= 64 or group_size < BLOCK_K:
        block_m, block_n, warps, stages, weights_first = 64, 128, 8, 4, True
    else:
        block_m, block_n, warps, stages, weights_first = 128, 128, 8, 3, True
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    split_k, blocks = 1, triton.cdiv(k, BLOCK_K)
    while split_k < _MAX_SPLIT and tiles * split_k < 3 * processors and blocks >= 8 * split_k:
        split_k *= 2
    tile_arguments = {"block_m": block_m, "block_n": block_n, "split_k": split_k, "weights_first": weights_first}
    return LaunchConfig(tile_arguments, warps, stages)


@operation(w4a16_reference)
def w4a16(a: torch.Tensor, weights: Int4Weights, *, config: LaunchConfig | None = None) -> torch.Tensor:
    """``a`` [m, k] (fp16 or bf16) times four-bit weights [k, n]; [m, n] in the type of ``a``, summed in fp32.

    Raises ``UnsupportedFormError`` for other types. Parts of a split ``k`` are added in a fixed order: equal inputs
    give equal outputs.
    """
    require_form("w4a16", "type", a.dtype, DTYPES)
    require_form("w4a16", "depth", a.shape[1], [weights.k])
    (m, k), n = a.shape, weights.n
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if m == 0:
        return out
    if a.stride(1) != 1:
        a = a.contiguous()
    config = config or launch_config(m, n, k, weights.group_size, capability(a.device), _processors(a.device))
    split_k = config.tiles["split_k"]
    partials = torch.empty((split_k, m, n), dtype=torch.float32, device=a.device) if split_k > 1 else out
    tiles = triton.cdiv(m, config.tiles["block_m"]) * triton.cdiv(n, config.tiles["block_n"])
    _w4a16[(tiles, split_k)](
        a,
        weights.words,
        weights.scales_and_zeros,
        out,
        partials,
        weights.arrivals,
        m,
        n,
        k,
        weights.words.shape[0],
        a.stride(0),
        group_size=weights.group_size,
        whole_blocks=k % BLOCK_K == 0,
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
        instructions = large if m > 32 else dict.fromkeys(CAPABILITIES, "mma.sync")
        split = max(config.tiles["split_k"] for config in configs.values()) > 1
        types = dict.fromkeys(("words", "scales_and_zeros", "arrivals"), "*i32")
        types |= {"a": f"*{kind}", "out": f"*{kind}", "partials": "*fp32" if split else f"*{kind}"}
        types |= dict.fromkeys(("m", "n", "k", "blocks", "a_row_stride"), "i32")
        constants = {"group_size": group_size, "whole_blocks": k % BLOCK_K == 0, "plain": False}
        form = f"{kind} group {group_size} m={m} k={k} n={n}"
        forms.append(CompiledForm(_w4a16, form, types, constants, configs, ("n", "k", "a_row_stride"), instructions))
    return forms
