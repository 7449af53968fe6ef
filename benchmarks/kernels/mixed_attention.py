"""A prefill chunk beside decodes: one launch against two (``flash_prefill``, then ``paged_decode``)."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from kernels.case import Case, Run, Sweep
from kernels.flash_prefill import flash_prefill
from kernels.launch import LaunchConfig
from kernels.mixed_attention import mixed_attention
from kernels.paged_decode import paged_decode

BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """A chunk of ``tokens`` over ``prefix`` beside ``batch`` decodes, each of ``context`` tokens with its own."""

    heads: int
    kv_heads: int
    head_dim: int
    tokens: int
    prefix: int
    batch: int
    context: int

    def operations(self) -> int:
        """Two for each multiply-add of both products."""
        chunk = self.tokens * self.prefix + self.tokens * (self.tokens + 1) // 2
        return 4 * self.heads * self.head_dim * (chunk + self.batch * self.context)

    def bytes_moved(self) -> int:
        """Queries and output; keys and values of prefix, chunk and contexts."""
        queries = 2 * self.heads * (self.tokens + self.batch)
        keys = 2 * self.kv_heads * (self.prefix + self.tokens + self.batch * self.context)
        return 2 * self.head_dim * (queries + keys)

    def inputs(self, device: torch.device) -> dict[str, Any]:
        """Random arguments of ``mixed_attention``: decodes first, the chunk last."""
        dtype = torch.float16 if device.type == "cpu" else torch.bfloat16  # the interpreter has no bf16 arithmetic
        total = self.batch + self.tokens
        new = {"q": self.heads, "k": self.kv_heads, "v": self.kv_heads}
        arguments: dict[str, Any] = {
            name: torch.randn(total, heads, self.head_dim, device=device, dtype=dtype) for name, heads in new.items()
        }
        longest = -(-max(self.context, self.prefix) // BLOCK_SIZE)
        tables = torch.randperm((self.batch + 1) * longest, device=device).to(torch.int32).view(self.batch + 1, longest)
        shape = (tables.numel(), self.kv_heads, BLOCK_SIZE, self.head_dim)
        starts = torch.tensor([*range(self.batch + 1), total], dtype=torch.int32, device=device)
        prefixes = torch.tensor([self.context - 1] * self.batch + [self.prefix], dtype=torch.int32, device=device)
        return arguments | {
            "query_starts": starts,
            "max_query_tokens": self.tokens,
            "decodes": self.batch,
            "scale": self.head_dim**-0.5,
            "key_cache": torch.randn(shape, device=device, dtype=dtype),
            "value_cache": torch.randn(shape, device=device, dtype=dtype),
            "block_tables": tables,
            "prefix_lengths": prefixes,
        }

    def one_launch(self, device: torch.device) -> Callable[[LaunchConfig | None], Run]:
        """From a configuration to a call."""
        arguments = self.inputs(device)

        def call(config: LaunchConfig | None) -> Run:
            return lambda: mixed_attention(**arguments, config=config)

        return call

    def two_launches(self, device: torch.device) -> Run:
        """The chunk, then the decodes, whose new keys are in the cache already."""
        arguments = self.inputs(device)
        q, k, v = (arguments[name] for name in ("q", "k", "v"))
        tables, scale, batch = arguments["block_tables"], arguments["scale"], self.batch
        cache = {name: arguments[name] for name in ("key_cache", "value_cache")}
        starts = torch.tensor([0, self.tokens], dtype=torch.int32, device=device)
        prefix = {"block_tables": tables[batch:], "prefix_lengths": arguments["prefix_lengths"][batch:], **cache}
        contexts = torch.full((batch,), self.context, dtype=torch.int32, device=device)

        def run() -> tuple[torch.Tensor, torch.Tensor]:
            chunk = flash_prefill(q[batch:], k[batch:], v[batch:], starts, self.tokens, scale, **prefix)
            decoded = paged_decode(
                q[:batch], *cache.values(), tables[:batch], contexts, scale, max_context_tokens=self.context
            )
            return chunk, decoded

        return run

    def cases(self) -> list[Case]:
        """One launch, and two."""
        shape = asdict(self)
        common: dict[str, Any] = {"kernel": "mixed_attention", "dtype": "bf16", "shape": shape}
        common |= {"bytes_moved": self.bytes_moved(), "operations": self.operations()}
        return [
            Case(form="one launch", prepare=lambda device: self.one_launch(device)(None), **common),
            Case(form="two launches", prepare=self.two_launches, **common),
        ]


def cases(toy: bool) -> list[Case]:
    """Each shape in both forms."""
    if toy:
        return Shape(4, 2, 64, 20, 18, 2, 40).cases()
    shapes = [
        Shape(32, 8, 128, tokens, prefix, batch, context)
        for tokens, prefix in ((512, 0), (512, 4096), (2048, 0), (2048, 8192))
        for batch, context in ((8, 4096), (32, 1024), (64, 4096), (16, 16384))
    ]
    return [case for shape in shapes for case in shape.cases()]


def sweeps() -> list[Sweep]:
    """Tiles to choose from, for a chunk beside many decodes and for a small chunk beside few."""
    tiles = [
        LaunchConfig(
            {"block_d": 128, "block_m": rows, "block_n": keys, "decode_n": decode_keys, "descriptors": descriptors},
            warps,
            stages,
        )
        for rows, keys, warps in ((128, 64, 8), (64, 64, 4), (64, 32, 4))
        for decode_keys in (32, 64, 128)
        for stages in (2, 3)
        for descriptors in (True, False)
        if 2 * 128 * (rows + 2 * stages * max(keys, decode_keys)) <= 226 * 1024
    ]
    shapes = [Shape(32, 8, 128, 2048, 0, 64, 4096), Shape(32, 8, 128, 512, 4096, 32, 1024)]
    return [_sweep(shape, tiles) for shape in shapes]


def _sweep(shape: Shape, candidates: Iterable[LaunchConfig]) -> Sweep:
    return Sweep(shape.cases()[0], list(candidates), shape.one_launch)
