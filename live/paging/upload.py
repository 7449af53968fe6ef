"""The way of a batch from numpy to a device."""

from collections.abc import Sequence

import numpy as np
import torch

from live.paging.step_batch import HostBatch, Ints, StepBatch


class Upload:
    """Brings batches to a device: on a GPU in one transfer each, from pinned memory, without waiting for it.

    Two pinned buffers take turns; before one is written again, the transfer that last read it must have ended.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers: list[torch.Tensor | None] = [None, None]
        self._ended: list[torch.cuda.Event | None] = [None, None]
        self._turn = 0

    def step(self, host: HostBatch) -> StepBatch:
        """The batch on the device."""
        longest = int(host.contexts.max())
        if self.device.type == "cpu":
            return _batch([torch.from_numpy(array) for array in host.arrays], host, longest)
        packed = torch.empty(packed_size(host), dtype=torch.int64, device=self.device)
        self.packed(host, packed)
        return unpacked(packed, host, longest)

    def packed(self, host: HostBatch, destination: torch.Tensor) -> None:
        """All arrays of the batch, one after the other, to an int64 tensor on the device."""
        if self.device.type == "cpu":
            destination.copy_(torch.from_numpy(_joined(host.arrays)))
            return
        turn = self._turn = 1 - self._turn
        ended = self._ended[turn]
        if ended is not None:
            ended.synchronize()
        size = destination.numel()
        buffer = self._buffers[turn]
        if buffer is None or buffer.numel() < size:
            buffer = self._buffers[turn] = torch.empty(2 * size, dtype=torch.int64, pin_memory=True)
        np.concatenate([array.ravel() for array in host.arrays], out=buffer[:size].numpy())
        destination.copy_(buffer[:size], non_blocking=True)
        event = self._ended[turn] = torch.cuda.Event()
        event.record()


def packed_size(host: HostBatch) -> int:
    """Numbers in all arrays of a batch."""
    return sum(array.size for array in host.arrays)


def unpacked(packed: torch.Tensor, host: HostBatch, max_context_tokens: int) -> StepBatch:
    """The batch whose arrays, in the shapes of ``host``, lie one after the other in ``packed``."""
    parts = packed.split([array.size for array in host.arrays])
    whole = [
        part.view(array.shape).to(torch.int32 if array.dtype == np.int32 else torch.int64)
        for part, array in zip(parts, host.arrays, strict=True)
    ]
    return _batch(whole, host, max_context_tokens)


def _batch(tensors: Sequence[torch.Tensor], host: HostBatch, max_context_tokens: int) -> StepBatch:
    tokens, positions, slots, tables, contexts, starts, rows = tensors
    return StepBatch(tokens, positions, slots, tables, contexts, starts, rows, host, max_context_tokens)


def _joined(arrays: Sequence[Ints]) -> Ints:
    return np.concatenate([array.ravel().astype(np.int64) for array in arrays])
