"""Prefill attention: prompts of 512 to 16k tokens, chunks over a prefix, windows and caps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from kernels.case import Case, Run, Sweep
from kernels.flash_prefill import flash_prefill, prefill_config
from kernels.launch import LaunchConfig

BLOCK_SIZE = 16
_BYTES = {"bf16": 2, "int8": 1, "fp8": 1}
_CACHE_TYPES = {"bf16": torch.bfloat16, "int8": torch.int8, "fp8": torch.float8_e4m3fn}


@dataclass(frozen=True, slots=True)
class Shape:
    """``batch`` prompts of ``tokens`` new tokens, each over ``prefix`` that a cache of type ``kv`` holds."""

    heads: int
    kv_heads: int
    head_dim: int
    batch: int
    tokens: int
    prefix: int = 0
    window: int = 0
    soft_cap: float = 0.0
    sinks: bool = False
    kv: str = "bf16"

    def pairs(self) -> int:
        """Pairs of a query and a key that it sees, of one prompt and head."""
        whole = (self.tokens + self.prefix) * (self.tokens + self.prefix + 1) // 2 - self.prefix * (
            self.prefix + 1
        ) // 2
        if not self.window:
            return whole
        growing = max(min(self.window - self.prefix, self.tokens), 0)  # queries that see all before them
        seen = growing * self.prefix + growing * (growing + 1) // 2
        return seen + (self.tokens - growing) * self.window

    def bytes_moved(self) -> int:
        """Queries and output, new keys and values, and of the prefix what the window lets see."""
        new = self.batch * self.tokens * self.head_dim * 2 * (2 * self.heads + 2 * self.kv_heads)
        prefix = min(self.prefix, self.window - 1) if self.window else self.prefix
        token_bytes = self.head_dim * _BYTES[self.kv] + (4 if self.kv != "bf16" else 0)
        return new + self.batch * prefix * 2 * self.kv_heads * token_bytes

    def inputs(self, device: torch.device) -> Callable[[LaunchConfig | None], Run]:
        """Random inputs; from a configuration to a call."""
        total = self.batch * self.tokens
        dtype = torch.float16 if device.type == "cpu" else torch.bfloat16  # the interpreter has no bf16 arithmetic
        q = torch.randn(total, self.heads, self.head_dim, device=device, dtype=dtype)
        k, v = (torch.randn(total, self.kv_heads, self.head_dim, device=device, dtype=dtype) for _ in range(2))
        starts = torch.arange(0, total + 1, self.tokens, dtype=torch.int32, device=device)
        options: dict[str, object] = {"window": self.window, "soft_cap": self.soft_cap}
        if self.sinks:
            options["sinks"] = torch.randn(self.heads, device=device)
        if self.prefix:
            options |= self._cache(device, dtype)

        def call(config: LaunchConfig | None) -> Run:
            return lambda: flash_prefill(
                q, k, v, starts, self.tokens, self.head_dim**-0.5, config=config, **options
            )  # fmt: skip

        return call

    def _cache(self, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
        per_prompt = -(-self.prefix // BLOCK_SIZE)
        shape = (self.batch * per_prompt, self.kv_heads, BLOCK_SIZE, self.head_dim)
        options: dict[str, object] = {}
        for name in ("key", "value"):
            cache = torch.randn(shape, device=device, dtype=dtype)
            if self.kv != "bf16":
                cache = (cache * 30).clamp(-127, 127).to(_CACHE_TYPES[self.kv])
                options[f"{name}_scales"] = torch.full(shape[:3], 1 / 30, device=device)
            options[f"{name}_cache"] = cache
        order = torch.randperm(shape[0], device=device).to(torch.int32)
        options["block_tables"] = order.view(self.batch, per_prompt)
        options["prefix_lengths"] = torch.full((self.batch,), self.prefix, dtype=torch.int32, device=device)
        return options

    def case(self) -> Case:
        """To be timed."""
        options = [("window", self.window), (f"cap {self.soft_cap:g}", self.soft_cap), ("sinks", self.sinks)]
        form = " ".join([f"over {self.kv}"] * bool(self.prefix) + [name for name, used in options if used]) or "causal"
        keys = ("heads", "kv_heads", "head_dim", "window", "batch", "tokens", "prefix")
        shape = {key: int(getattr(self, key)) for key in keys}
        calibrated = self.kv != "int8" and not self.soft_cap  # shapes of calibration have no caps
        return Case(
            kernel="flash_prefill",
            form=form,
            dtype="bf16",
            shape=shape,
            prepare=lambda device: self.inputs(device)(None),
            bytes_moved=self.bytes_moved(),
            operations=4 * self.batch * self.heads * self.head_dim * self.pairs(),
            kind="context_attention" if calibrated else None,
            sample={"kv_dtype": self.kv, **shape} if calibrated else None,
        )

    def sweep(self, candidates: Iterable[LaunchConfig]) -> Sweep:
        """To choose a configuration by."""
        shipped = prefill_config(
            "bf16",
            self.head_dim,
            90,
            paged=self.prefix > 0,
            scaled=self.kv != "bf16",
            window=self.window,
            capped=self.soft_cap > 0,
            max_query_tokens=self.tokens,
        )
        return Sweep(self.case(), list(candidates), self.inputs, shipped)


def cases(toy: bool) -> list[Case]:
    """What is timed: the acceptance shapes (hd 128, 8k and 16k) first."""
    if toy:
        toys = [Shape(2, 1, 64, 2, 40), Shape(2, 1, 64, 1, 20, prefix=40), Shape(2, 1, 64, 1, 20, 40, kv="int8")]
        return [shape.case() for shape in [*toys, Shape(2, 1, 128, 1, 60, window=16, soft_cap=5.0, sinks=True)]]
    shapes = [Shape(32, 8, 128, 1, 8192), Shape(32, 8, 128, 1, 16384)]
    shapes += [Shape(32, 32, 128, 1, 8192), Shape(32, 32, 128, 1, 16384)]
    for heads, kv_heads in ((32, 8), (64, 8), (8, 1), (32, 32)):
        shapes += [Shape(heads, kv_heads, 128, 1, tokens) for tokens in (128, 512, 1024, 2048, 4096)]
        shapes += [Shape(heads, kv_heads, 128, 8, tokens) for tokens in (128, 512, 2048)]
    for prefix in (512, 2048, 8192, 16384):
        shapes += [Shape(32, 8, 128, 1, tokens, prefix) for tokens in (128, 512, 2048)]
    shapes += [Shape(32, 8, 128, 1, 2048, 8192, kv=kv) for kv in ("int8", "fp8")]
    shapes += [Shape(32, 8, head_dim, 1, 8192) for head_dim in (64, 96, 256)]
    shapes += [Shape(64, 8, 64, 1, tokens, window=128, sinks=True) for tokens in (2048, 8192)]
    shapes += [Shape(64, 8, 64, 1, 8192, sinks=True), Shape(16, 8, 256, 1, 8192, soft_cap=50.0)]
    shapes += [Shape(16, 8, 256, 1, 8192, window=4096, soft_cap=50.0), Shape(32, 8, 128, 1, 8192, window=1024)]
    return [shape.case() for shape in shapes]


def sweeps() -> list[Sweep]:
    """Tiles to choose from, by head dimension and with a prefix."""
    wide = [
        *_tiles(128, ((128, 128, 8), (128, 64, 8), (64, 128, 4), (64, 64, 4), (64, 128, 8)), (2, 3)),
        *_tiles(128, ((128, 128, 8), (128, 64, 8), (64, 64, 4)), (2, 3), descriptors=False),
        *_tiles(128, ((64, 64, 4), (128, 32, 8), (128, 64, 8), (64, 32, 4)), (4,)),
    ]
    narrow = [
        *_tiles(64, ((128, 128, 8), (128, 64, 8), (128, 64, 4), (64, 128, 4), (64, 64, 4), (256, 64, 8)), (2, 3, 4)),
        *_tiles(64, ((128, 128, 8), (128, 64, 4), (64, 64, 4)), (2, 3), descriptors=False),
    ]
    widest = [
        *_tiles(256, ((64, 64, 8), (64, 64, 4), (128, 32, 8), (128, 64, 8), (64, 32, 4), (64, 32, 8)), (2, 3)),
        *_tiles(256, ((64, 64, 8), (128, 32, 8)), (2,), descriptors=False),
    ]
    return [
        Shape(32, 8, 128, 1, 16384).sweep(wide),
        Shape(32, 8, 128, 1, 2048).sweep(wide),
        Shape(32, 8, 128, 8, 512).sweep(wide),
        Shape(32, 8, 128, 1, 2048, 8192).sweep(wide),
        Shape(32, 8, 128, 1, 512, 8192).sweep(wide),
        Shape(32, 8, 128, 1, 2048, 8192, kv="int8").sweep(wide),
        Shape(32, 8, 128, 1, 2048, 8192, kv="fp8").sweep(wide),
        Shape(32, 8, 96, 1, 8192).sweep(wide),
        Shape(32, 8, 64, 1, 8192).sweep(narrow),
        Shape(64, 8, 64, 1, 8192, window=128, sinks=True).sweep(narrow),
        Shape(16, 8, 256, 1, 8192).sweep(widest),
        Shape(16, 8, 256, 1, 8192, soft_cap=50.0).sweep(widest),
        Shape(16, 8, 256, 1, 2048, 8192).sweep(widest),
    ]


def _tiles(
    block_d: int,
    tiles: Iterable[tuple[int, int, int]],
    stages: Iterable[int],
    descriptors: bool = True,
) -> list[LaunchConfig]:
    """Configurations of (rows, keys, warps) by stages that fit shared memory."""
    return [
        LaunchConfig({"block_d": block_d, "block_m": rows, "block_n": keys, "descriptors": descriptors}, warps, depth)
        for rows, keys, warps in tiles
        for depth in stages
        if 2 * block_d * (rows + 2 * depth * keys) + 1024 <= 227 * 1024
    ]
