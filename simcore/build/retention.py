"""Engines that keep only part of what a request has said: attention sinks with a window, or a fixed budget."""

from dataclasses import replace

from simcore.models import CachedAttention, ModelSpec
from simcore.scenario import Retention

_SINK_TOKENS = 4
"""What StreamingLLM found to be enough (arXiv:2309.17453, table 2; recalled)."""


def with_retention(spec: ModelSpec, retention: Retention, block_size_tokens: int) -> ModelSpec:
    """The model as an engine runs it that keeps no more than ``retention`` of each request in any layer.

    Sinks and a window (StreamingLLM, arXiv:2309.17453) take the blocks in which the first ``sink_tokens`` lie and a
    window: as many blocks, read as often, as one window of all these tokens. A budget (H2O, arXiv:2306.14048) keeps
    that many tokens, wherever they are, and takes as much as a window of so many. Layers with a window of their own
    keep the smaller; states of linear attention are no part of it.
    """
    kept_tokens = retention.budget_tokens
    if retention.window_tokens is not None:
        sink_tokens = _SINK_TOKENS if retention.sink_tokens is None else retention.sink_tokens
        sink_blocks = -(-sink_tokens // block_size_tokens)
        kept_tokens = sink_blocks * block_size_tokens + retention.window_tokens
    if kept_tokens is None:
        return spec
    groups = tuple(
        replace(
            group,
            attention=replace(
                group.attention, window_tokens=min(kept_tokens, group.attention.window_tokens or kept_tokens)
            ),
        )
        if isinstance(group.attention, CachedAttention)
        else group
        for group in spec.layer_groups
    )
    return replace(spec, layer_groups=groups)
