"""A backend that times each of its operations, and says which kernel of which shape it was."""

from dataclasses import dataclass

import torch

from live.backends.base import Attending, Backend
from live.measuring.stopwatch import Stopwatch
from live.model.config import DecoderConfig
from live.model.weights import RoutedWeights
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import StepBatch
from simcore.cost.model_operators import embedding_operators, head_operators, layer_operators
from simcore.cost.operators import MEASURED_AS
from simcore.models import Attention

DTYPE_NAMES = {torch.float32: "fp32", torch.float16: "bf16", torch.bfloat16: "bf16"}
"""What profiles call number formats: GEMMs of 16 bits are those of bf16."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel kind of profiles and its shape, by the names of its columns; ``parts`` launches count as one lap."""

    kind: str
    shape: tuple[tuple[str, str | int], ...]
    parts: int = 1


REST = "rest"
"""The label of what is no kernel: making inputs, block tables, choosing rows."""
TOGETHER = "together"
"""The label of attention of decodes and chunks together, of which no single kernel can be told."""


class TimedBackend(Backend):
    """Does what another backend does, one lap of a stopwatch after the other.

    What lies between two operations is part of the second, so that laps add up to the whole pass.
    """

    def __init__(self, backend: Backend, watch: Stopwatch, config: DecoderConfig) -> None:
        self._backend, self.watch = backend, watch
        spec = config.spec
        operators = [*layer_operators(spec, spec.dtype, 1), *embedding_operators(spec), *head_operators(spec, 1)]
        self._widths = {
            MEASURED_AS[operator.name]: (operator.activation_bytes_per_token / operator.launches, operator.launches)
            for operator in operators
            if operator.name in MEASURED_AS
        }

    def elementwise(self, operator: str, tokens: int, parts: int = 1) -> Launch:
        """An elementwise kernel as simulations look for it, whose width is that of 16-bit activations."""
        width, _ = self._widths[operator]
        columns = (("operator", operator), ("bytes_per_token", round(width)), ("tokens", tokens))
        return Launch("elementwise", columns, parts)

    def check(self, config: DecoderConfig, block_size: int) -> None:
        """As the other."""
        self._backend.check(config, block_size)

    def embed(self, table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """As the other."""
        found = self._backend.embed(table, tokens)
        self.watch.lap(self.elementwise("embedding", len(tokens)))
        return found

    def multiply(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """As the other."""
        found = self._backend.multiply(x, weight, bias)
        n, k = weight.shape
        self.watch.lap(Launch("gemm", (("dtype", DTYPE_NAMES[x.dtype]), ("tokens", len(x)), ("n", n), ("k", k))))
        return found

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """As the other."""
        found = self._backend.rms_norm(x, weight, epsilon)
        self.watch.lap(self.elementwise("norm" if x.dim() == 2 else "query_key_norm", len(x)))
        return found

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As the other."""
        found = self._backend.add_rms_norm(x, residual, weight, epsilon)
        self.watch.lap(self.elementwise("norm", len(x)))
        return found

    def silu_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """As the other."""
        found = self._backend.silu_mul(gate_up)
        self.watch.lap(self.elementwise("activation", len(gate_up)))
        return found

    def routed(self, x: torch.Tensor, logits: torch.Tensor, block: RoutedWeights, renormalise: bool) -> torch.Tensor:
        """As the other. Which experts tokens visit is as even as made-up weights and tokens make it."""
        found = self._backend.routed(x, logits, block, renormalise)
        experts, hidden, width = block.experts.down.shape
        sizes = {"hidden": hidden, "intermediate": width, "experts_per_token": block.experts_per_token}
        split = {"experts": experts, "tensor_parallel": 1, "expert_parallel": 1, "tokens": len(x)}
        shape: dict[str, str | int] = {"dtype": DTYPE_NAMES[x.dtype], "distribution": "balanced", **sizes, **split}
        self.watch.lap(Launch("moe", tuple(shape.items())))
        return found

    def attention(self, step: StepBatch, cos_sin: torch.Tensor, kv: KVTensors) -> Attending:
        """As the other."""
        found = self._backend.attention(step, cos_sin, kv)
        self.watch.lap(REST)
        return _TimedAttending(found, self, step, DTYPE_NAMES[kv.keys.dtype])


class _TimedAttending(Attending):
    """Times steps of decodes alike, and of one chunk alone."""

    def __init__(self, attending: Attending, backend: TimedBackend, step: StepBatch, kv_dtype: str) -> None:
        self._attending, self._backend = attending, backend
        host = step.host
        contexts = host.contexts
        decodes = step.decodes == len(contexts)
        sizes: tuple[tuple[str, int], ...]
        if decodes:
            self._kind, sizes = "generation_attention", (("batch", len(contexts)), ("context", round(contexts.mean())))
        else:
            self._kind, tokens = "context_attention", int(host.query_starts[-1])
            sizes = (("batch", 1), ("tokens", tokens), ("prefix", int(contexts[-1]) - tokens))
        self._told = decodes or len(contexts) == 1
        self._sizes, self._kv_dtype = sizes, kv_dtype
        self._written = backend.elementwise("rotary_and_kv_write", len(host.tokens), parts=2)

    def write(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As the other; simulations count two launches."""
        found = self._attending.write(layer, queries, keys, values)
        self._backend.watch.lap(self._written)
        return found

    def attend(
        self, layer: int, form: Attention, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """As the other."""
        found = self._attending.attend(layer, form, queries, keys, values)
        heads = (("kv_dtype", self._kv_dtype), ("heads", form.query_heads), ("kv_heads", form.kv_heads))
        shape = (*heads, ("head_dim", form.head_dim), ("window", form.window_tokens or 0), *self._sizes)
        self._backend.watch.lap(Launch(self._kind, shape) if self._told else TOGETHER)
        return found
