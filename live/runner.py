"""A model on a device, with its keys and values: what the engine runs its steps on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from live.backends import Backend, make_backend
from live.decoder import Decoder
from live.graphs import CudaCapture, GraphedDecoder
from live.model.config import DecoderConfig
from live.model.weights import DecoderWeights, load_weights
from live.opening import OpenModel
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import SequenceInput, build_batch
from live.paging.upload import Upload
from simcore.core.errors import CapacityError


class ModelRunner:
    """Runs steps of one model; ``kv`` copies blocks and moves them to and from the CPU's memory.

    Not for several threads at once.
    """

    def __init__(self, weights: DecoderWeights, kv: KVTensors, backend: Backend, max_context_tokens: int) -> None:
        self.weights, self.kv, self.backend = weights, kv, backend
        self.max_context_tokens = max_context_tokens
        self._decoder = Decoder(weights, backend, max_context_tokens)
        self._upload = Upload(weights.device)
        self._graphs: GraphedDecoder | None = None
        if backend.graphs and weights.device.type == "cuda":
            self._graphs = GraphedDecoder(self._decoder, kv, self._upload, CudaCapture())

    @property
    def config(self) -> DecoderConfig:
        """What is known of the model."""
        return self.weights.config

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.weights.device

    def run(self, sequences: Sequence[SequenceInput]) -> torch.Tensor:
        """One step: float32 logits [rows, vocabulary] on the device, in the order of ``sequences``.

        A sequence has as many rows as it wants (``logit_tokens``). Keys and values of all new tokens are in their
        blocks afterwards. On a GPU the result may still be on its way; whoever reads it waits. Raises ``ValueError``
        for a batch that cannot be, ``CapacityError`` where device memory does not suffice.
        """
        host = build_batch(sequences, self.kv.block_size)
        if int(host.contexts.max()) > self.max_context_tokens:
            raise ValueError(f"a context of {host.contexts.max()} tokens is beyond {self.max_context_tokens}")
        with _enough_memory("for a step", "max_batched_tokens"):
            if self._graphs is not None and self._graphs.takes(host):
                return self._graphs.logits(host).float()
            return self._decoder.logits(self._upload.step(host), self.kv).float()


def make_runner(
    model: OpenModel,
    *,
    blocks: int,
    block_size: int = 16,
    host_blocks: int = 0,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    backend: str | None = None,
    weight_format: str = "plain",
    max_context_tokens: int | None = None,
    threads: int | None = None,
) -> ModelRunner:
    """A runner with all weights loaded and room for ``blocks`` blocks of keys and values.

    ``host_blocks`` more are kept in the CPU's memory for swapping. ``backend`` is "torch" or "triton", by default
    torch on a CPU and Triton on a GPU. ``max_context_tokens`` is by default what the model allows and the blocks hold.
    ``threads`` are those of torch on the CPU, which keeps its own number by default.

    Raises ``FileError`` for weights that cannot be read, ``InputError`` for what the backend cannot run,
    ``CapacityError`` where memory does not suffice.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    place = torch.device(device)
    computing = make_backend(backend, place)
    computing.check(model.config, block_size)
    longest = min(model.config.spec.max_context_tokens, blocks * block_size)
    with _enough_memory("for the weights", "the size of the model"):
        weights = load_weights(model.config, model.source, dtype, place, weight_format)
    with _enough_memory(f"for {blocks} blocks of keys and values", "num_gpu_blocks"):
        kv = KVTensors(model.config, blocks, block_size, dtype, place, host_blocks)
    return ModelRunner(weights, kv, computing, min(longest, max_context_tokens or longest))


@contextmanager
def _enough_memory(purpose: str, setting: str) -> Iterator[None]:
    """Tell that memory does not suffice in one sentence that says what to lower."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise CapacityError(f"Device memory does not suffice {purpose}; lower {setting}.") from None
    except RuntimeError as error:
        if "DefaultCPUAllocator" not in str(error):
            raise
        raise CapacityError(f"The CPU's memory does not suffice {purpose}; lower {setting}.") from None
