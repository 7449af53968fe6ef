"""Decode steps as CUDA graphs: captured once for a padded batch, then replayed."""

from collections.abc import Callable

import numpy as np
import torch

from live.decoder import Decoder
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import HostBatch
from live.paging.upload import Upload, packed_size, unpacked

Capture = Callable[[Callable[[], torch.Tensor]], tuple[Callable[[], object], torch.Tensor]]
"""Makes what a function does repeatable: returns how to do it again, and the tensor that then holds its result."""
_LARGEST_BATCH = 512
_LEAST_BLOCKS = 16


class GraphedDecoder:
    """Runs batches that only decode, each sequence for one token, padded to sizes of which there are few.

    A row of padding has no context, writes nowhere, and its logits are left out.
    """

    def __init__(self, decoder: Decoder, kv: KVTensors, upload: Upload, capture: Capture) -> None:
        self._decoder, self._kv, self._upload, self._capture = decoder, kv, upload, capture
        self._graphs: dict[tuple[int, int], tuple[Callable[[], object], torch.Tensor, torch.Tensor]] = {}

    @staticmethod
    def takes(host: HostBatch) -> bool:
        """Whether a batch is one of its."""
        return host.decodes == len(host.contexts) <= _LARGEST_BATCH

    def logits(self, host: HostBatch) -> torch.Tensor:
        """As ``Decoder.logits``; valid until the next step."""
        form = padded_batch(len(host.tokens)), padded_width(host.block_tables.shape[1])
        padded = pad(host, *form)
        if form not in self._graphs:
            self._graphs[form] = self._captured(padded)
        replay, packed, logits = self._graphs[form]
        self._upload.packed(padded, packed)
        replay()
        return logits[torch.from_numpy(host.logit_rows).to(logits.device)]

    def _captured(self, padded: HostBatch) -> tuple[Callable[[], object], torch.Tensor, torch.Tensor]:
        packed = torch.zeros(packed_size(padded), dtype=torch.int64, device=self._kv.keys.device)
        self._upload.packed(padded, packed)
        longest = padded.block_tables.shape[1] * self._kv.block_size

        def run() -> torch.Tensor:
            return self._decoder.logits(unpacked(packed, padded, longest), self._kv)

        replay, logits = self._capture(run)
        return replay, packed, logits


class CudaCapture:
    """Captures in one pool of memory, which graphs share as they never run at the same time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], torch.Tensor]) -> tuple[Callable[[], object], torch.Tensor]:
        """Runs once before, for kernels to be compiled."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            result = run()
        return graph.replay, result


def padded_batch(sequences: int) -> int:
    """The next of 1, 2, 4, 8, then multiples of 8 up to 64, of 16 up to 256, and of 32."""
    if sequences <= 8:
        return 1 << (sequences - 1).bit_length()
    step = 8 if sequences <= 64 else 16 if sequences <= 256 else 32
    return -(-sequences // step) * step


def padded_width(blocks: int) -> int:
    """The next power of two."""
    return 1 << (max(blocks, _LEAST_BLOCKS) - 1).bit_length()


def pad(host: HostBatch, sequences: int, width: int) -> HostBatch:
    """The batch with rows of padding at the end, block tables so wide, and logits of all rows."""
    more = sequences - len(host.tokens)
    tables = np.zeros((sequences, width), dtype=np.int32)
    tables[: len(host.tokens), : host.block_tables.shape[1]] = host.block_tables
    return HostBatch(
        tokens=np.pad(host.tokens, (0, more)),
        positions=np.pad(host.positions, (0, more)),
        slots=np.pad(host.slots, (0, more), constant_values=-1),
        block_tables=tables,
        contexts=np.pad(host.contexts, (0, more)),
        query_starts=np.arange(sequences + 1, dtype=np.int32),
        logit_rows=np.arange(sequences),
        decodes=sequences,
    )
