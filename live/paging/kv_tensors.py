"""Paged keys and values as tensors, and what a block manager's decisions do to them."""

from collections.abc import Sequence

import torch

from kernels.kv_copy import copy_blocks, gather_blocks, scatter_blocks
from live.model.config import DecoderConfig


class KVTensors:
    """Keys and values of all layers: two tensors [layers, blocks, kv_heads, block_size, head_dim].

    A token's slot in a layer is ``block * block_size + offset``. ``host_blocks`` more lie in the CPU's memory (pinned
    where the device is a GPU), numbered from 0 by themselves. Both start as zeros.
    """

    def __init__(
        self,
        config: DecoderConfig,
        blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device,
        host_blocks: int = 0,
    ) -> None:
        attention, layers = config.attention, config.spec.layers
        block = (attention.kv_heads, block_size, attention.head_dim)
        self.blocks, self.block_size, self.host_blocks = blocks, block_size, host_blocks
        self.keys, self.values = torch.zeros((2, layers, blocks, *block), dtype=dtype, device=device)
        pinned = device.type == "cuda"
        host = torch.zeros((2, layers, host_blocks, *block), dtype=dtype, pin_memory=pinned)
        self._host_keys, self._host_values = host

    @property
    def block_bytes(self) -> int:
        """Bytes of one block, keys and values of all layers together."""
        return 2 * self.keys[:, :1].nbytes

    def copy(self, sources: Sequence[int], destinations: Sequence[int]) -> None:
        """Make each block of ``destinations`` hold what its source does (copy-on-write). No destination is a source."""
        if sources:
            moved = self._indices(sources), self._indices(destinations)
            for cache in (self.keys, self.values):
                copy_blocks(cache, *moved, axis=1)

    def swap_out(self, blocks: Sequence[int], host_blocks: Sequence[int]) -> None:
        """Copy blocks to host blocks; they hold it when this returns."""
        if blocks:
            taken, places = self._indices(blocks), torch.tensor(host_blocks)
            for cache, host in ((self.keys, self._host_keys), (self.values, self._host_values)):
                host.index_copy_(1, places, gather_blocks(cache, taken, axis=1).to(host.device))

    def swap_in(self, host_blocks: Sequence[int], blocks: Sequence[int]) -> None:
        """Copy host blocks back to blocks; whatever the device does next sees it."""
        if blocks:
            taken, places = torch.tensor(host_blocks), self._indices(blocks)
            for cache, host in ((self.keys, self._host_keys), (self.values, self._host_values)):
                scatter_blocks(host.index_select(1, taken).to(cache.device), cache, places, axis=1)

    def _indices(self, blocks: Sequence[int]) -> torch.Tensor:
        return torch.tensor(blocks, dtype=torch.int32).to(self.keys.device)


def kv_block_bytes(config: DecoderConfig, block_size: int, dtype: torch.dtype) -> int:
    """Bytes that one block of ``block_size`` tokens takes, keys and values of all layers together."""
    return config.spec.kv_elements_per_token * block_size * dtype.itemsize
