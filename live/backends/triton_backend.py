"""The forward pass by the project's kernels: on a GPU, or in Triton's interpreter."""

import torch

from kernels.elementwise import silu_mul
from kernels.expert_routing import route_top_k
from kernels.flash_prefill import flash_prefill
from kernels.gemm import gemm
from kernels.moe import moe
from kernels.paged_decode import HEAD_DIMS, paged_decode
from kernels.prefill_inputs import BLOCK_SIZES
from kernels.rms_norm import add_rms_norm, rms_norm
from kernels.rope import rotate_and_write
from live.backends.base import Attending, Backend
from live.model.config import DecoderConfig
from live.model.weights import RoutedWeights
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import StepBatch
from simcore.core.errors import InputError
from simcore.models import Attention


class TritonBackend(Backend):
    """Every operation is one of ``kernels``."""

    graphs = True

    def check(self, config: DecoderConfig, block_size: int) -> None:
        """Kernels have a few head dimensions and block sizes."""
        if config.attention.head_dim not in HEAD_DIMS:
            expected = f"one of {', '.join(map(str, HEAD_DIMS))} for the kernels; the backend torch has any"
            raise InputError("head_dim", config.attention.head_dim, expected)
        if block_size not in BLOCK_SIZES:
            expected = f"one of {', '.join(map(str, BLOCK_SIZES))} for the kernels; the backend torch has any"
            raise InputError("block_size", block_size, expected)

    def multiply(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """``kernels.gemm``."""
        return gemm(x, weight, bias)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """``kernels.rms_norm``."""
        return rms_norm(x, weight, epsilon)

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``kernels.add_rms_norm``."""
        return add_rms_norm(x, residual, weight, epsilon)

    def silu_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """``kernels.silu_mul``."""
        return silu_mul(gate_up)

    def routed(self, x: torch.Tensor, logits: torch.Tensor, block: RoutedWeights, renormalise: bool) -> torch.Tensor:
        """``kernels.route_top_k`` and ``kernels.moe``."""
        shares, chosen = route_top_k(logits, block.experts_per_token, renormalise)
        return moe(x, block.experts, shares, chosen)

    def attention(self, step: StepBatch, cos_sin: torch.Tensor, kv: KVTensors) -> Attending:
        """``kernels.rotate_and_write``, ``kernels.paged_decode`` and ``kernels.flash_prefill``."""
        return _TritonAttention(step, cos_sin, kv)


class _TritonAttention(Attending):
    def __init__(self, step: StepBatch, cos_sin: torch.Tensor, kv: KVTensors) -> None:
        self.step, self.cos_sin, self.kv = step, cos_sin, kv
        decodes, host = step.decodes, step.host
        self.chunks = len(host.contexts) - decodes
        if self.chunks:
            starts = step.query_starts[decodes:]
            self.query_starts = (starts - decodes).int()
            self.prefixes = (step.contexts[decodes:] - (starts[1:] - starts[:-1])).int()
            counts = host.query_starts[decodes + 1 :] - host.query_starts[decodes:-1]
            self.max_query_tokens = int(counts.max())

    def write(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``kernels.rotate_and_write``."""
        step, caches = self.step, (self.kv.keys[layer], self.kv.values[layer])
        return rotate_and_write(queries, keys, values, step.positions, self.cos_sin, step.slots, *caches)

    def attend(
        self, layer: int, form: Attention, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Decodes over the cache; chunks over their own tokens, and the cache for what came before."""
        step, decodes = self.step, self.step.decodes
        caches = self.kv.keys[layer], self.kv.values[layer]
        scale, window = form.head_dim**-0.5, form.window_tokens or 0
        parts = []
        if decodes:
            parts.append(
                paged_decode(
                    queries[:decodes],
                    *caches,
                    step.block_tables[:decodes],
                    step.contexts[:decodes],
                    scale,
                    window=window,
                    max_context_tokens=step.max_context_tokens,
                )
            )
        if self.chunks:
            parts.append(
                flash_prefill(
                    queries[decodes:],
                    keys[decodes:],
                    values[decodes:],
                    self.query_starts,
                    self.max_query_tokens,
                    scale,
                    window=window,
                    key_cache=caches[0],
                    value_cache=caches[1],
                    block_tables=step.block_tables[decodes:],
                    prefix_lengths=self.prefixes,
                )
            )
        return parts[0] if len(parts) == 1 else torch.cat(parts)
