"""The forward pass in torch, for any device; made to be quick on a CPU."""

import functools

import torch
from torch.nn import functional

from live.backends.base import Attending, Backend
from live.backends.block_attention import BlockAttention
from live.model.config import DecoderConfig
from live.model.weights import RoutedWeights
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import StepBatch
from simcore.models import Attention

_FEW_TOKENS, _TALL_ROWS, _PART_ROWS = 64, 16_384, 1024


class TorchBackend(Backend):
    """Attention is block by block for all decodes at once, ``scaled_dot_product_attention`` for each chunk."""

    def __init__(self) -> None:
        self._gathered = Scratch(), Scratch()

    def check(self, config: DecoderConfig, block_size: int) -> None:
        """Every model and block size will do."""

    def multiply(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """torch's own GEMM; that of few tokens and a tall matrix, as a head is, part by part.

        So it takes two thirds of the time on a CPU: measured at 2 to 64 tokens for 49,152 rows of 576.
        """
        if bias is None and x.device.type == "cpu" and 1 < len(x) <= _FEW_TOKENS and len(weight) >= _TALL_ROWS:
            return torch.cat([functional.linear(x, part) for part in weight.split(_PART_ROWS)], dim=1)
        return functional.linear(x, weight, bias)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """By the length of each row, which takes fewer calls than torch's own norm does on a CPU."""
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        scale = torch.rsqrt_(length.square_().div_(x.shape[-1]).add_(epsilon))
        return (x * scale).to(x.dtype).mul_(weight)

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One after the other."""
        total = x + residual
        return self.rms_norm(total, weight, epsilon), total

    def silu_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """One after the other."""
        gate, up = gate_up.chunk(2, dim=-1)
        return functional.silu(gate).mul_(up)

    def routed(self, x: torch.Tensor, logits: torch.Tensor, block: RoutedWeights, renormalise: bool) -> torch.Tensor:
        """Expert by expert, each with all tokens that visit it."""
        shares, chosen = logits.float().softmax(-1).topk(block.experts_per_token, dim=-1)
        if renormalise:
            shares = shares / shares.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for expert in chosen.unique().tolist():
            tokens, places = (chosen == expert).nonzero(as_tuple=True)
            inner = self.silu_mul(functional.linear(x[tokens], block.experts.gate_up[expert]))
            share = shares[tokens, places, None].to(x.dtype)
            out.index_add_(0, tokens, functional.linear(inner, block.experts.down[expert]) * share)
        return out

    def attention(self, step: StepBatch, cos_sin: torch.Tensor, kv: KVTensors) -> Attending:
        """Over gathered blocks."""
        return _TorchAttention(step, cos_sin, kv, self._gathered)


class Scratch:
    """Memory that is used again and again: to ask for as much each time would cost more than to fill it."""

    def __init__(self) -> None:
        self._memory = torch.empty(0)

    def taken(self, shape: tuple[int, int], like: torch.Tensor) -> torch.Tensor:
        """A tensor whose content is whatever it is, until the next one is taken."""
        size = shape[0] * shape[1]
        memory = self._memory
        if memory.numel() < size or memory.dtype != like.dtype or memory.device != like.device:
            memory = self._memory = torch.empty(size + size // 2, dtype=like.dtype, device=like.device)
        return memory[:size].view(shape)


class _TorchAttention(Attending):
    def __init__(self, step: StepBatch, cos_sin: torch.Tensor, kv: KVTensors, scratch: tuple[Scratch, Scratch]) -> None:
        self.step, self.kv, self.scratch = step, kv, scratch
        self.kv_heads, self.block_size, self.head_dim = kv.keys.shape[2:]
        self.device = kv.keys.device
        angles = cos_sin[step.positions].to(kv.keys.dtype)[:, None]
        self.cos, self.sin = angles.split(self.head_dim // 2, dim=2)
        self.heads = torch.arange(self.kv_heads, device=self.device)
        block, offset = step.slots.div(self.block_size, rounding_mode="floor"), step.slots % self.block_size
        rows = (block[:, None] * self.kv_heads + self.heads) * self.block_size + offset[:, None]
        self.written = rows.flatten()
        lengths = step.host.contexts.tolist()
        self.lengths = lengths
        self.starts = step.host.query_starts.tolist()
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def write(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One after the other."""
        queries, keys = self.rotated(queries), self.rotated(keys)
        for cache, new in ((self.kv.keys[layer], keys), (self.kv.values[layer], values)):
            cache.view(-1, self.head_dim).index_copy_(0, self.written, new.reshape(-1, self.head_dim))
        return queries, keys

    def attend(
        self, layer: int, form: Attention, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Decodes in one call, then each chunk."""
        caches = self.kv.keys[layer], self.kv.values[layer]
        decodes, window = self.step.decodes, form.window_tokens
        parts = [self.decode(queries[:decodes], *caches, window)] if decodes else []
        parts += [self.chunk(index, queries, *caches, window) for index in range(decodes, len(self.lengths))]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def rotated(self, heads: torch.Tensor) -> torch.Tensor:
        first, second = heads.chunk(2, dim=-1)
        turned = torch.addcmul(first * self.cos, second, self.sin, value=-1)
        return torch.cat([turned, torch.addcmul(second * self.cos, first, self.sin)], dim=-1)

    def decode(
        self, queries: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, window: int | None
    ) -> torch.Tensor:
        """All decodes over their blocks."""
        width = self.kv_heads * self.block_size * self.head_dim
        found = []
        for cache, scratch in zip((key_cache, value_cache), self.scratch, strict=True):
            memory = scratch.taken((len(self.decodes.blocks), width), cache)
            torch.index_select(cache.view(-1, width), 0, self.decodes.blocks, out=memory)
            found.append(memory.view(-1, self.kv_heads, self.block_size, self.head_dim))
        return self.decodes.attend(queries, found[0], found[1], window)

    @functools.cached_property
    def decodes(self) -> BlockAttention:
        return BlockAttention(self.step, self.block_size)

    @functools.cached_property
    def chunk_rows(self) -> dict[int, torch.Tensor]:
        return {index: self.rows_of(index) for index in range(self.step.decodes, len(self.lengths))}

    def rows_of(self, index: int) -> torch.Tensor:
        """Numbers of the pairs of block and head that hold the tokens of a sequence, head by head."""
        table = self.step.block_tables[index, : -(-self.lengths[index] // self.block_size)].long()
        return (table[None] * self.kv_heads + self.heads[:, None]).flatten()

    def gathered(
        self, key_cache: torch.Tensor, value_cache: torch.Tensor, rows: torch.Tensor, tokens: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [1, kv_heads, tokens, head_dim] of a sequence, valid until the next are gathered."""
        width = self.block_size * self.head_dim
        found = []
        for cache, scratch in zip((key_cache, value_cache), self.scratch, strict=True):
            memory = scratch.taken((len(rows), width), cache)
            torch.index_select(cache.view(-1, width), 0, rows, out=memory)
            found.append(memory.view(1, self.kv_heads, -1, self.head_dim)[:, :, :tokens])
        return found[0], found[1]

    def chunk(
        self, index: int, queries: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, window: int | None
    ) -> torch.Tensor:
        keys, values = self.gathered(key_cache, value_cache, self.chunk_rows[index], self.lengths[index])
        q = queries[self.starts[index] : self.starts[index + 1]]
        whole = len(q) == self.lengths[index] and (window is None or window >= len(q))
        mask = None if whole else self.chunk_mask(index, len(q), window)
        heads_first = q.transpose(0, 1)[None]
        found = functional.scaled_dot_product_attention(
            heads_first, keys, values, mask, is_causal=whole, enable_gqa=True
        )
        return found[0].transpose(0, 1)

    def chunk_mask(self, index: int, new: int, window: int | None) -> torch.Tensor:
        """What to add to scores [new tokens, tokens]."""
        mask = self.masks.get((index, window))
        if mask is None:
            places = torch.arange(self.lengths[index], device=self.device)
            ahead = places - places[-new:, None]
            hidden = ahead > 0
            if window is not None:
                hidden |= ahead <= -window
            mask = self.masks[index, window] = self.added(hidden)
        return mask

    def added(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.zeros(hidden.shape, dtype=self.kv.keys.dtype, device=self.device).masked_fill_(hidden, -torch.inf)
