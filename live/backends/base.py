"""What a forward pass asks of whoever computes it."""

from abc import ABC, abstractmethod

import torch

from live.model.config import DecoderConfig
from live.model.weights import RoutedWeights
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import StepBatch
from simcore.models import Attention


class Attending(ABC):
    """Attention of one step, in one layer after the other: ``write``, then ``attend``."""

    @abstractmethod
    def write(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotate queries and keys, and write keys and values to their slots; both as rotated.

        ``queries`` [tokens, heads, head_dim], ``keys`` and ``values`` [tokens, kv_heads, head_dim], in rows that may be
        parts of a joint projection.
        """

    @abstractmethod
    def attend(
        self, layer: int, form: Attention, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Attend with rotated queries and keys: [tokens, heads, head_dim]."""


class Backend(ABC):
    """Operations of a decoder. Activations are [tokens, width]."""

    graphs: bool = False
    """Whether its steps can be captured as CUDA graphs."""

    @abstractmethod
    def check(self, config: DecoderConfig, block_size: int) -> None:
        """Raise ``InputError`` for a model or block size that it cannot run."""

    def embed(self, table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The rows of ``tokens``."""
        return table[tokens]

    @abstractmethod
    def multiply(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """``x [m, k] @ weight [n, k].T + bias [n]``."""

    @abstractmethod
    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """RMSNorm (Zhang and Sennrich, 2019) over the last dimension of [tokens, width] or [tokens, heads, width]."""

    @abstractmethod
    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The norm of ``x + residual``, and that sum."""

    @abstractmethod
    def silu_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """``silu(gate) * up`` of [tokens, 2 * width], gates first."""

    @abstractmethod
    def routed(self, x: torch.Tensor, logits: torch.Tensor, block: RoutedWeights, renormalise: bool) -> torch.Tensor:
        """The weighted sum of the experts that each token visits: those of the greatest router ``logits``."""

    @abstractmethod
    def attention(self, step: StepBatch, cos_sin: torch.Tensor, kv: KVTensors) -> Attending:
        """Attention of a step; ``cos_sin`` float32 [positions, head_dim] are cosines, then sines."""
