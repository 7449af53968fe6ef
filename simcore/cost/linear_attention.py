"""Layers that keep a state, such as linear attention: the work of their kernels on one rank.

Of a value head's state S, key k, query q and value v the gated delta rule computes for each token
S <- decay * S + beta * (v - S k) k^T and S q (Yang et al., arXiv:2412.06464, section 3.1), whatever stands before it. A
state space does without S k: S <- decay * S + x b^T and S c, from a token's x, b and c (Dao and Gu, arXiv:2405.21060,
section 3).
"""

from dataclasses import dataclass

from simcore.memory.recurrent_state import linear_attention_counts, state_bytes
from simcore.models import LinearAttention, ModelSpec, Recurrent, heads_per_rank
from simcore.models.weight_formats import ACTIVATION_BYTES

STATE_FLOPS = 7
"""Of each number of the state: one to let it decay, two each to recall what the key holds, to write and to read."""
STATE_SPACE_FLOPS = 5
"""One to let it decay, two each to write and to read."""


@dataclass(frozen=True, slots=True)
class LinearAttentionWork:
    """The linear attention of ``count`` layers on one rank, between projections and gated norm.

    A token costs ``flops_per_token`` and moves ``bytes_per_token``; a request's state of ``state_bytes`` is read and
    written once in every step. Heads are those of the rank. Measurements are of the ``delta_rule`` alone.
    """

    count: int
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    flops_per_token: float
    bytes_per_token: float
    state_bytes: float
    delta_rule: bool = True

    def flops(self, tokens: int) -> float:
        """Floating-point operations of one layer."""
        return self.flops_per_token * tokens

    def bytes(self, tokens: int, requests: int) -> float:
        """Bytes that one layer must read and write for so many tokens of so many requests."""
        return self.bytes_per_token * tokens + self.state_traffic_bytes * requests

    @property
    def state_traffic_bytes(self) -> float:
        """Bytes that a request's state in one layer moves in a step: it is read and written."""
        return 2 * self.state_bytes


def linear_attention_work(spec: ModelSpec, ranks: int) -> tuple[LinearAttentionWork, ...]:
    """The linear attention of the whole model on one of ``ranks`` tensor-parallel ranks, layers alike put together."""
    counts = linear_attention_counts(spec)
    return tuple(_work(attention, count, ranks) for attention, count in counts.items())


def _work(attention: Recurrent, count: int, ranks: int) -> LinearAttentionWork:
    value_heads = heads_per_rank(attention.value_heads, ranks)
    convolved = -(-attention.convolved // ranks)
    values = value_heads * attention.value_head_dim
    delta_rule = isinstance(attention, LinearAttention) and attention.gate_rank is None
    state_flops = (STATE_FLOPS if delta_rule else STATE_SPACE_FLOPS) * values * attention.key_head_dim
    return LinearAttentionWork(
        count,
        heads_per_rank(attention.key_heads, ranks),
        value_heads,
        attention.key_head_dim,
        attention.value_head_dim,
        flops_per_token=state_flops + 2.0 * attention.convolution_width * convolved,
        bytes_per_token=(2 * convolved + convolved + values) * ACTIVATION_BYTES,
        state_bytes=state_bytes(attention, ranks),
        delta_rule=delta_rule,
    )
