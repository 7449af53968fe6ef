"""Attention of many decodes in torch, block by block of their keys and values: nothing is padded but scores.

What it takes is in proportion to the blocks that the sequences hold together, however unequal their lengths are.
"""

import torch

from live.paging.step_batch import StepBatch


class BlockAttention:
    """Attention of the ``decodes`` of one step, over blocks of ``block_size`` tokens, in one layer after the other."""

    def __init__(self, step: StepBatch, block_size: int) -> None:
        self._decodes, self._block_size = step.decodes, block_size
        device = step.block_tables.device
        contexts = step.contexts[: self._decodes]
        counts = -(-step.host.contexts[: self._decodes] // block_size)
        held = torch.as_tensor(counts, dtype=torch.int64, device=device)
        self._most = int(counts.max())
        columns = torch.arange(self._most, device=device)
        inside = (columns < held[:, None]).flatten()
        self._place = inside.nonzero().flatten()
        self._owner = self._place.div(self._most, rounding_mode="floor")
        self.blocks = step.block_tables[: self._decodes, : self._most].flatten()[self._place].long()
        """Blocks of the first sequence, then of the second, and so on."""
        self._tokens = torch.arange(self._most * block_size, device=device)
        self._lengths = contexts[:, None]
        self._hidden: dict[int | None, torch.Tensor] = {}

    def attend(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, window: int | None
    ) -> torch.Tensor:
        """Queries [decodes, heads, head_dim] over gathered ``keys`` and ``values``; as many rows of the same shape.

        These are [blocks, kv_heads, block_size, head_dim]. Scores are laid out by sequence for the softmax; sums over
        blocks are in 32 bits.
        """
        blocks, kv_heads, size, width = keys.shape
        count, most = self._decodes, self._most
        group = queries.shape[1] // kv_heads
        of_blocks = (queries * width**-0.5).view(count, -1).index_select(0, self._owner).view(-1, group, width)
        scores = torch.bmm(of_blocks, keys.view(-1, size, width).transpose(1, 2)).view(blocks, -1)
        laid_out = scores.new_zeros(count * most, scores.shape[1]).index_copy_(0, self._place, scores)
        rows = laid_out.view(count, most, kv_heads * group, size).transpose(1, 2).reshape(count, kv_heads * group, -1)
        shares = (rows + self._added(window, rows.dtype)).softmax(-1)
        by_block = shares.view(count, kv_heads * group, most, size).transpose(1, 2).reshape(count * most, -1)
        own = by_block.index_select(0, self._place).view(-1, group, size)
        found = torch.bmm(own, values.view(-1, size, width)).view(blocks, -1).float()
        total = found.new_zeros(count, found.shape[1]).index_add_(0, self._owner, found)
        return total.to(queries.dtype).view(queries.shape)

    def _added(self, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """What to add to scores [decodes, 1, tokens]."""
        added = self._hidden.get(window)
        if added is None:
            hidden = self._tokens >= self._lengths
            if window is not None:
                hidden |= self._tokens < self._lengths - window
            added = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)
            added = self._hidden[window] = added[:, None]
        return added
