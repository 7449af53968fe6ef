"""Decode with multi-head latent attention over paged latents: what a step costs by batch, context and heads."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from kernels.case import Case, Run, Sweep
from kernels.launch import LaunchConfig
from kernels.mla_decode import HEAD_DIM, LATENT_DIM, launch_config, mla_decode

_TORCH_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_SHARED_BYTES = 227 * 1024  # that a program may have on an H200


@dataclass(frozen=True, slots=True)
class Shape:
    """Requests with contexts alike; ``splits`` 0 leaves their number to the kernel."""

    batch: int
    context: int
    heads: int = 128
    block_size: int = 64
    dtype: str = "bf16"
    splits: int = 0

    def case(self) -> Case:
        """This shape as a case."""
        value_bytes = _TORCH_TYPES[self.dtype].itemsize
        numbers = {name: value for name, value in asdict(self).items() if isinstance(value, int)}
        usual = self.block_size == 64 and not self.splits
        attention = {"kv_dtype": self.dtype, "heads": self.heads, "kv_heads": 1, "head_dim": HEAD_DIM, "window": 0}
        return Case(
            kernel="mla_decode",
            form=f"{self.dtype}, block size {self.block_size}",
            dtype=self.dtype,
            shape=numbers,
            prepare=lambda device: self.launches(device)(None),
            bytes_moved=self.batch * (self.context * HEAD_DIM + self.heads * (HEAD_DIM + LATENT_DIM)) * value_bytes,
            operations=2 * self.batch * self.context * self.heads * (HEAD_DIM + LATENT_DIM),
            kind="mla_generation" if usual else None,
            sample={**attention, "batch": self.batch, "context": self.context} if usual else None,
        )

    def launches(self, device: torch.device) -> Callable[[LaunchConfig | None], Run]:
        """Fresh random inputs, and from a configuration to a call on them."""
        blocks = math.ceil(self.context / self.block_size)
        dtype = _TORCH_TYPES[self.dtype]
        q = torch.randn(self.batch, self.heads, HEAD_DIM, device=device).to(dtype)
        latents = torch.randn(self.batch * blocks, self.block_size, HEAD_DIM, device=device, dtype=dtype)
        tables = torch.randperm(self.batch * blocks, device=device).to(torch.int32).reshape(self.batch, blocks)
        lengths = torch.full((self.batch,), self.context, dtype=torch.int32, device=device)
        options = {"splits": self.splits or None, "max_context_tokens": self.context}
        return lambda config: (
            lambda: mla_decode(q, latents, tables, lengths, 1 / math.sqrt(192), config=config, **options)
        )


def cases(toy: bool) -> list[Case]:
    """Shares of DeepSeek-V2 and V3's 128 heads, and the 16 of V2-Lite, by batch and context."""
    if toy:
        return [Shape(2, 40, 4, block_size=16, dtype="fp16").case()]
    grid = [(batch, context) for batch in (1, 8, 32, 128) for context in (512, 2048, 8192)]
    shapes = [Shape(batch, context, heads) for heads in (16, 128) for batch, context in grid]
    shapes += [Shape(batch, 8192, heads) for heads in (32, 64) for batch in (8, 64)]
    shapes += [Shape(64, context, heads) for heads in (16, 128) for context in (4096, 16384)]
    shapes += [Shape(batch, 32768, heads) for heads in (16, 128) for batch in (1, 8)]
    shapes += [Shape(64, 8192, heads, block_size=16) for heads in (16, 128)]
    return [shape.case() for shape in shapes]


def sweeps() -> list[Sweep]:
    """Head tiles, token tiles, warps and stages by number of heads, and numbers of splits."""
    every = [
        LaunchConfig({"rows": rows, "tile_tokens": tile}, num_warps=warps, num_stages=stages)
        for rows in (16, 32, 64)
        for tile in (16, 32, 64)
        for warps in (4, 8)
        for stages in (2, 3, 4)
    ]
    shapes = [Shape(64, 8192, heads, size) for heads in (16, 128) for size in (16, 64)]
    shapes += [Shape(64, 8192, 32), Shape(64, 8192, 64), Shape(1, 8192, 16), Shape(1, 8192, 128)]
    found = [
        _sweep(
            shape,
            [config for config in every if _fits(shape, config)],
            launch_config(torch.bfloat16, shape.batch, shape.heads, shape.block_size, 90),
        )
        for shape in shapes
    ]
    for heads, rows, choices in ((16, 16, (1, 2, 3, 4, 6, 8)), (128, 64, (1, 2, 3, 4))):
        few = [config for config in every if config.tiles == {"rows": rows, "tile_tokens": 32}]
        for splits in choices:
            shape = Shape(64, 8192, heads, splits=splits)
            found.append(_sweep(shape, [config for config in few if _fits(shape, config)]))
    return found


def _fits(shape: Shape, config: LaunchConfig) -> bool:
    """Whether queries and tiles fit into shared memory, and no more rows are computed than there are heads."""
    tokens = (config.num_stages - (config.tiles["rows"] < 64)) * config.tiles["tile_tokens"]
    shared_bytes = 2 * HEAD_DIM * (tokens + config.tiles["rows"])
    return shared_bytes <= _SHARED_BYTES and config.tiles["rows"] <= max(16, shape.heads)


def _sweep(shape: Shape, candidates: list[LaunchConfig], shipped: LaunchConfig | None = None) -> Sweep:
    return Sweep(shape.case(), candidates, shape.launches, shipped)
