"""Decode attention over paged keys and values, as its definition reads."""

import torch


def paged_decode_reference(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    *,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    splits: int | None = None,
    max_context_tokens: int,
) -> torch.Tensor:
    """Attention of one query token per request to its context, in float64; ``kernels.paged_decode`` has the arguments.

    ``splits`` and ``max_context_tokens`` say how the work may be divided, so they have no effect here.
    """
    batch, heads, _ = q.shape
    kv_heads, block_size = key_cache.shape[1:3]
    out = torch.zeros_like(q)
    for request in range(batch):
        length = int(context_lengths[request])
        if length == 0:
            continue
        blocks = block_tables[request, : -(-length // block_size)].long()
        first = max(0, length - window) if window else 0
        keys = _tokens(key_cache, key_scales, blocks)[:, first:length]
        values = _tokens(value_cache, value_scales, blocks)[:, first:length]
        queries = q[request].double().unflatten(0, (kv_heads, heads // kv_heads))
        logits = torch.einsum("hgd,htd->hgt", queries, keys) * scale
        if soft_cap:
            logits = soft_cap * torch.tanh(logits / soft_cap)
        if sinks is not None:
            sink = sinks.double().reshape(kv_heads, -1, 1)
            weights = torch.softmax(torch.cat([logits, sink], -1), -1)[..., :-1]
        else:
            weights = torch.softmax(logits, -1)
        out[request] = torch.einsum("hgt,htd->hgd", weights, values).flatten(0, 1).to(q.dtype)
    return out


def _tokens(cache: torch.Tensor, scales: torch.Tensor | None, blocks: torch.Tensor) -> torch.Tensor:
    """The tokens of some blocks, dequantised: [kv_heads, tokens, head_dim] in float64."""
    bytes_like = cache.view(torch.uint8) if cache.element_size() == 1 else cache  # not every type can be indexed
    tokens = bytes_like[blocks].view(cache.dtype).double().transpose(0, 1).flatten(1, 2)
    if scales is not None:
        tokens = tokens * scales[blocks].double().transpose(0, 1).flatten(1, 2)[..., None]
    return tokens
