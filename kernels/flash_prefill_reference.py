"""Prefill attention in float64, one sequence and one head at a time."""

from itertools import pairwise

import torch


def paged(
    cache: torch.Tensor, scales: torch.Tensor | None, blocks: torch.Tensor, kv_head: int, tokens: int
) -> torch.Tensor:
    """The first ``tokens`` of one head of a sequence that lies in ``blocks`` of a cache: float64 [tokens, head_dim]."""
    used = blocks[: -(-tokens // cache.shape[2])].long()
    rows = cache[used, kv_head].double()
    if scales is not None:
        rows = rows * scales[used, kv_head].double()[..., None]
    return rows.flatten(0, 1)[:tokens]


def attend(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scale: float,
    window: int,
    soft_cap: float,
    sink: torch.Tensor | None,
) -> torch.Tensor:
    """Attention of the last ``len(q)`` of ``len(keys)`` tokens to all up to themselves; all [tokens, head_dim]."""
    scores = q @ keys.T * scale
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    at = torch.arange(len(keys) - len(q), len(keys), device=q.device)[:, None]
    ahead = at - torch.arange(len(keys), device=q.device)
    visible = (ahead >= 0) & (ahead < window) if window else ahead >= 0
    scores = scores.masked_fill(~visible, -torch.inf)
    if sink is not None:
        scores = torch.cat((scores, sink.double().expand(len(q), 1)), dim=1)
    return scores.softmax(dim=1)[:, : len(keys)] @ values


def flash_prefill_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    query_starts: torch.Tensor,
    max_query_tokens: int,
    scale: float,
    *,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_cache: torch.Tensor | None = None,
    value_cache: torch.Tensor | None = None,
    block_tables: torch.Tensor | None = None,
    prefix_lengths: torch.Tensor | None = None,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same as ``flash_prefill``, computed in float64."""
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    group = q.shape[1] // k.shape[1]
    starts = query_starts.tolist()
    for sequence, (first, last) in enumerate(pairwise(starts)):
        for head in range(q.shape[1]):
            kv_head = head // group
            keys, values = k[first:last, kv_head].double(), v[first:last, kv_head].double()
            if key_cache is not None:
                assert value_cache is not None
                assert block_tables is not None
                assert prefix_lengths is not None
                blocks, prefix = block_tables[sequence], int(prefix_lengths[sequence])
                keys = torch.cat((paged(key_cache, key_scales, blocks, kv_head, prefix), keys))
                values = torch.cat((paged(value_cache, value_scales, blocks, kv_head, prefix), values))
            sink = None if sinks is None else sinks[head]
            head_q = q[first:last, head].double()
            out[first:last, head] = attend(head_q, keys, values, scale, window, soft_cap, sink).to(q.dtype)
    return out
