"""How ``gemm`` and ``w8a8`` launch the matmul kernels: their arguments, and the same as types for compilation ahead."""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.ahead_of_time import CompiledForm
from kernels.launch import LaunchConfig
from kernels.matmul_config import PROCESSORS, by_tma, resident_programs
from kernels.matmul_tiles import pointer_tiles, sum_splits, tma_tiles

_SUM_CONFIG = LaunchConfig({"block_m": 1, "block_n": 256}, num_warps=2, num_stages=1)


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales of the operands in one of the forms that ``matmul_tiles`` describes."""

    per_token: bool = False
    per_channel: bool = False
    block: bool = False

    def constants(self) -> dict[str, bool]:
        """The constexpr arguments of the kernels."""
        return {"per_token": self.per_token, "per_channel": self.per_channel, "block_scales": self.block}


def matmul(
    a: torch.Tensor,
    weight: torch.Tensor,
    out_dtype: torch.dtype,
    config: LaunchConfig,
    *,
    bias: torch.Tensor | None = None,
    a_scales: torch.Tensor | None = None,
    weight_scales: torch.Tensor | None = None,
    scales: Scales | None = None,
) -> torch.Tensor:
    """``a [m, k] @ weight [n, k].T``, scaled, plus ``bias [n]``, as ``out_dtype`` [m, n]."""
    (m, k), n = a.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=out_dtype, device=a.device)
    if m == 0 or n == 0:
        return out
    extras = (bias, a_scales, weight_scales)
    constants = (scales or Scales()).constants()
    tiles = config.tiles
    tile_count = triton.cdiv(m, tiles["block_m"]) * triton.cdiv(n, tiles["block_n"])
    if by_tma(config):
        descriptors = (
            TensorDescriptor.from_tensor(a, [tiles["block_m"], tiles["block_k"]]),
            TensorDescriptor.from_tensor(weight, [tiles["block_n"], tiles["block_k"]]),
            TensorDescriptor.from_tensor(out, [tiles["block_m"], tiles["store_n"]]),
        )
        resident = resident_programs(config, a.element_size(), out.element_size())
        programs = min(tile_count, _processors(a.device) * resident)
        tma_tiles[(programs,)](*descriptors, *extras, m, n, k, **constants, **config.arguments())
        return out
    splits = tiles["splits"]
    if splits == 1:
        pointer_tiles[(tile_count, 1)](a, weight, out, *extras, m, n, k, **constants, **config.arguments())
        return out
    whole = a.dtype == torch.int8 and not constants["block_scales"]
    sum_dtype = torch.int32 if whole else torch.float32
    sums = torch.empty((splits, m, n), dtype=sum_dtype, device=a.device)
    pointer_tiles[(tile_count, splits)](a, weight, sums, *extras, m, n, k, **constants, **config.arguments())
    grid = (m, triton.cdiv(n, _SUM_CONFIG.tiles["block_n"]))
    sum_splits[grid](sums, out, *extras, m, n, splits=splits, **constants, **_SUM_CONFIG.arguments())
    return out


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return PROCESSORS[90]
    return torch.cuda.get_device_properties(device).multi_processor_count


def compiled_matmul(
    form: str,
    item: str,
    out: str,
    capability: int,
    config: LaunchConfig,
    *,
    bias: bool = False,
    scales: Scales | None = None,
    one_row: bool = False,
    aligned: bool = True,
    instruction: str = "",
) -> list[CompiledForm]:
    """The kernels that ``matmul`` launches by ``config``: operands of Triton type ``item``, result of type ``out``.

    A launch for ``one_row`` has a kernel of its own, since Triton takes an argument of 1 for a constant.
    """
    tiles = config.tiles
    sums = "i32" if item == "i8" and not (scales and scales.block) else "fp32"
    sizes = {} if one_row else {"m": "i32"}
    constants: dict[str, Any] = {"m": 1} if one_row else {}
    constants |= (scales or Scales()).constants()
    types: dict[str, str] = {}
    for name, kind, given in (
        ("bias", f"*{out}", bias),
        ("a_scales", "*fp32", scales is not None),
        ("weight_scales", "*fp32", scales is not None),
    ):
        if given:
            types[name] = kind
        else:
            constants[name] = None
    divisible = ("n", "k") if aligned else ()
    instructions = {capability: instruction} if instruction else {}
    if by_tma(config):
        blocks = {
            "a": f"tensordesc<{item}[{tiles['block_m']}, {tiles['block_k']}]>",
            "weight": f"tensordesc<{item}[{tiles['block_n']}, {tiles['block_k']}]>",
            "out": f"tensordesc<{out}[{tiles['block_m']}, {tiles['store_n']}]>",
        }
        configs = {capability: config}
        return [
            CompiledForm(
                tma_tiles,
                form,
                {**blocks, **types, **sizes, "n": "i32", "k": "i32"},
                constants,
                configs,
                divisible,
                instructions,
            )
        ]
    split = tiles["splits"] > 1
    pointers = {"a": f"*{item}", "weight": f"*{item}", "out": f"*{sums if split else out}"}
    forms = [
        CompiledForm(
            pointer_tiles,
            form,
            {**pointers, **types, **sizes, "n": "i32", "k": "i32"},
            constants,
            {capability: config},
            divisible,
            instructions,
        )
    ]
    if split:
        forms.append(
            CompiledForm(
                sum_splits,
                form,
                {"sums": f"*{sums}", "out": f"*{out}", **types, **sizes, "n": "i32"},
                {**constants, "splits": tiles["splits"]},
                {capability: _SUM_CONFIG},
                divisible[:1],
            )
        )
    return forms
