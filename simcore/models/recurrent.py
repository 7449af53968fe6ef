"""Layers that keep a state of a fixed size for each request, whatever its context, instead of keys and values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta rule (Yang et al., arXiv:2412.06464): one state per value head, whatever the context.

    Each of ``key_heads`` serves as many of ``value_heads``. The state is ``key_head_dim`` x ``value_head_dim`` numbers
    a value head; queries, keys and values pass a causal convolution over ``convolution_width`` tokens before, whose
    last inputs are kept too. Projections to the output's gate and to the two of the state stand ``apart`` in
    checkpoints of Qwen3.5; those of Qwen3-Next are two matrices in all. Engines may join them.

    With ``gate_rank`` the state decays by a number per channel of keys, which comes as the output's gate does through a
    projection that narrow (Kimi Delta Attention, arXiv:2510.26692).
    """

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    convolution_width: int = 4
    apart: bool = False
    gate_rank: int | None = None

    @property
    def query_heads(self) -> int:
        """As many as key heads."""
        return self.key_heads

    @property
    def kv_elements_per_token(self) -> int:
        """None in the KV cache: a request has a state instead."""
        return 0

    @property
    def convolved(self) -> int:
        """Numbers of a token's queries, keys and values."""
        return 2 * self.key_heads * self.key_head_dim + self.value_heads * self.value_head_dim

    @property
    def projected(self) -> int:
        """Numbers of a token that the projections in make, but for a few per head: these and the output's gate."""
        return self.convolved + (1 if self.gate_rank is None else 2) * self.value_heads * self.value_head_dim


@dataclass(frozen=True, slots=True)
class StateSpace:
    """Mamba-2 (Dao and Gu, arXiv:2405.21060), or Mamba-1 (Gu and Dao, arXiv:2312.00752) where it has a ``step_rank``.

    A state is ``value_head_dim`` x ``state_size`` numbers a head. Heads of Mamba-2 share the two projections of the
    state by ``groups``, and these pass the convolution over ``convolution_width`` tokens together with the head's
    inputs. Mamba-1 has a step per channel, projected through ``step_rank``: its heads are channels. ``inner_norms``
    tells of norms: of what is gated (Mamba-2), or of steps and projections (Jamba's Mamba-1).
    """

    value_heads: int
    value_head_dim: int
    state_size: int
    groups: int = 1
    convolution_width: int = 4
    step_rank: int | None = None
    convolution_bias: bool = True
    projection_bias: bool = False
    inner_norms: bool = True

    @property
    def query_heads(self) -> int:
        """As many as heads."""
        return self.value_heads

    @property
    def key_heads(self) -> int:
        """The groups stand where linear attention has key heads."""
        return self.groups

    @property
    def key_head_dim(self) -> int:
        """The size of the state stands where linear attention has the width of keys."""
        return self.state_size

    @property
    def inner(self) -> int:
        """Numbers of a token between the projections."""
        return self.value_heads * self.value_head_dim

    @property
    def kv_elements_per_token(self) -> int:
        """None in the KV cache: a request has a state instead."""
        return 0

    @property
    def convolved(self) -> int:
        """Numbers of a token that pass the convolution."""
        return self.inner + (0 if self.step_rank is not None else 2 * self.groups * self.state_size)

    @property
    def projected(self) -> int:
        """Numbers of a token that the projection in makes: these, the gate and the steps of heads."""
        return self.convolved + self.inner + (0 if self.step_rank is not None else self.value_heads)


@dataclass(frozen=True, slots=True)
class ShortConvolution:
    """A gated convolution over few tokens (LFM2): its last inputs are all that a request keeps.

    A token's ``value_heads`` channels are projected three times: two gates, and what is convolved.
    """

    value_heads: int
    convolution_width: int
    bias: bool = False

    key_heads = 1
    key_head_dim = 0
    value_head_dim = 1
    kv_elements_per_token = 0

    @property
    def query_heads(self) -> int:
        """As many as channels."""
        return self.value_heads

    @property
    def convolved(self) -> int:
        """Numbers of a token that pass the convolution."""
        return self.value_heads

    @property
    def projected(self) -> int:
        """Numbers of a token that the projection in makes."""
        return 3 * self.value_heads


@dataclass(frozen=True, slots=True)
class LightningAttention:
    """Linear attention whose states decay at a fixed rate of each head (MiniMax-01, arXiv:2501.08313, section 2.2).

    Nothing is convolved; the output has a norm over all heads and a gate as wide.
    """

    value_heads: int
    value_head_dim: int

    convolution_width = 1
    kv_elements_per_token = 0
    convolved = 0

    @property
    def query_heads(self) -> int:
        """As many as heads."""
        return self.value_heads

    @property
    def key_heads(self) -> int:
        """As many as heads."""
        return self.value_heads

    @property
    def key_head_dim(self) -> int:
        """As wide as values."""
        return self.value_head_dim

    @property
    def projected(self) -> int:
        """Numbers of a token that the projections in make: queries, keys, values and the output's gate."""
        return 4 * self.value_heads * self.value_head_dim


Recurrent = LinearAttention | StateSpace | ShortConvolution | LightningAttention
"""Any layer with a state."""
