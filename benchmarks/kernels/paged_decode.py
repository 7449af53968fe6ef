"""Decode attention over paged keys and values: what a step costs by batch, context, heads and cache type."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch

from kernels.case import Case, Run, Sweep
from kernels.launch import LaunchConfig
from kernels.paged_decode import paged_decode
from kernels.paged_decode_config import launch_config

_TORCH_TYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}
_SHARED_BYTES = 227 * 1024  # that a program may have on an H200


@dataclass(frozen=True, slots=True)
class Shape:
    """Requests with contexts alike; ``splits`` 0 leaves their number to the kernel."""

    batch: int
    context: int
    heads: int = 64
    kv_heads: int = 8
    head_dim: int = 128
    block_size: int = 16
    cache: str = "bf16"
    query: str = "bf16"
    splits: int = 0

    def case(self) -> Case:
        """This shape as a case."""
        token_bytes = 2 * self.head_dim * _TORCH_TYPES[self.cache].itemsize + (8 if self.scaled else 0)
        tokens = self.batch * self.context * self.kv_heads
        outputs = 2 * self.batch * self.heads * self.head_dim * _TORCH_TYPES[self.query].itemsize
        numbers = {name: value for name, value in asdict(self).items() if isinstance(value, int)}
        usual = self.block_size == 16 and not self.splits and self.query == "bf16" and self.cache != "int8"
        attention = {"kv_dtype": self.cache, "heads": self.heads, "kv_heads": self.kv_heads, "head_dim": self.head_dim}
        return Case(
            kernel="paged_decode",
            form=f"{self.cache} cache, block size {self.block_size}",
            dtype=self.query,
            shape=numbers,
            prepare=lambda device: self.launches(device)(None),
            bytes_moved=tokens * token_bytes + outputs,
            operations=4 * self.batch * self.context * self.heads * self.head_dim,
            kind="generation_attention" if usual else None,
            sample={**attention, "window": 0, "batch": self.batch, "context": self.context} if usual else None,
        )

    @property
    def scaled(self) -> bool:
        """Whether the cache has scales."""
        return self.cache in ("fp8", "int8")

    def launches(self, device: torch.device) -> Callable[[LaunchConfig | None], Run]:
        """Fresh random inputs, and from a configuration to a call on them."""
        blocks = math.ceil(self.context / self.block_size)
        cache_shape = (self.batch * blocks, self.kv_heads, self.block_size, self.head_dim)
        q = torch.randn(self.batch, self.heads, self.head_dim, device=device).to(_TORCH_TYPES[self.query])
        keys, values = (_random(cache_shape, _TORCH_TYPES[self.cache], device) for _ in range(2))
        tables = torch.randperm(self.batch * blocks, device=device).to(torch.int32).reshape(self.batch, blocks)
        lengths = torch.full((self.batch,), self.context, dtype=torch.int32, device=device)
        scales = [torch.rand(cache_shape[:3], device=device) / 64 if self.scaled else None for _ in range(2)]
        return lambda config: (
            lambda: paged_decode(
                q,
                keys,
                values,
                tables,
                lengths,
                1 / math.sqrt(self.head_dim),
                key_scales=scales[0],
                value_scales=scales[1],
                splits=self.splits or None,
                max_context_tokens=self.context,
                config=config,
            )
        )

    def shipped(self) -> LaunchConfig:
        """What the kernel chooses."""
        return launch_config(_TORCH_TYPES[self.cache], self.head_dim, self.heads // self.kv_heads)

    def fits(self, config: LaunchConfig) -> bool:
        """Whether the buffers of a configuration leave shared memory for the rest."""
        tile_bytes = 2 * config.tiles["tile_tokens"] * self.head_dim * _TORCH_TYPES[self.cache].itemsize
        return (config.num_stages - 1) * tile_bytes + 16 * 1024 <= _SHARED_BYTES


def _random(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if dtype == torch.int8:
        return torch.randint(-127, 128, shape, dtype=dtype, device=device)
    half = torch.randn(shape, dtype=torch.float16 if dtype.itemsize == 1 else dtype, device=device)
    return half.to(dtype)


_HEADLINE = [Shape(64, context, block_size=size) for context in (4096, 8192, 16384) for size in (16, 64)]


def cases(toy: bool) -> list[Case]:
    """The headline shapes and a spread over batch, context, heads and cache types."""
    if toy:
        small = [Shape(2, 40, 4, 2, 64, cache=cache, query="fp16") for cache in ("fp16", "fp8", "int8")]
        return [shape.case() for shape in small]
    shapes = list(_HEADLINE)
    shapes += [Shape(64, context, cache=cache) for cache in ("fp8", "int8") for context in (4096, 16384)]
    grid = [(batch, context) for batch in (1, 8, 32, 128) for context in (512, 2048, 8192)]
    for heads, kv_heads in ((32, 8), (8, 1), (32, 32)):
        shapes += [
            Shape(batch, context, heads, kv_heads) for batch, context in grid if batch * context * kv_heads < 2**24
        ]
    shapes += [Shape(batch, 32768, 32, 8) for batch in (1, 8)] + [Shape(1, 131072, 64, 8)]
    shapes += [Shape(batch, context, 32, 8, cache="fp8") for batch in (8, 128) for context in (512, 2048, 8192)]
    shapes += [Shape(64, 8192, 64, 8, head_dim) for head_dim in (64, 256)]
    return [shape.case() for shape in shapes]


def sweeps() -> list[Sweep]:
    """Tiles, warps and stages for the shapes that matter, and numbers of splits for the headline ones."""
    headline = Shape(64, 8192)
    shapes = [replace(headline, block_size=size, cache=cache) for cache in ("bf16", "fp8", "int8") for size in (16, 64)]
    shapes += [replace(headline, head_dim=64), replace(headline, head_dim=256, context=4096), Shape(1, 16384)]
    shapes += [replace(headline, heads=8), Shape(64, 8192, 32, 1)]
    every = [
        LaunchConfig({"tile_tokens": tile}, num_warps=warps, num_stages=stages)
        for tile in (32, 64, 128)
        for warps in (2, 4, 8)
        for stages in (2, 3, 4, 5)
    ]
    found = [
        # A lone request's tiles were timed with more splits than it has now: the sweep of splits chooses for it.
        _sweep(shape, [config for config in every if shape.fits(config)], shape.shipped() if shape.batch > 1 else None)
        for shape in shapes
    ]
    few = [
        LaunchConfig({"tile_tokens": tile}, num_warps=4, num_stages=stages) for tile in (64, 128) for stages in (3, 4)
    ]
    for shape in (headline, replace(headline, context=4096), replace(headline, cache="fp8"), Shape(1, 16384)):
        choices = (8, 16, 32, 64) if shape.batch == 1 else (1, 2, 3, 4, 6, 8)
        found += [_sweep(replace(shape, splits=splits), few) for splits in choices]
    return found


def _sweep(shape: Shape, candidates: list[LaunchConfig], shipped: LaunchConfig | None = None) -> Sweep:
    return Sweep(shape.case(), candidates, shape.launches, shipped)
