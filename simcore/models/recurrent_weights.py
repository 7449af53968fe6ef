"""The weight tensors of layers that keep a state: linear attention, state spaces and short convolutions."""

from collections.abc import Iterator

from simcore.models.recurrent import LightningAttention, LinearAttention, Recurrent, ShortConvolution, StateSpace
from simcore.models.tensors import Weight, matrix, vector
from simcore.models.weight_formats import Role


def recurrent_weights(layer: Recurrent, hidden_size: int) -> Iterator[Weight]:
    """The tensors of one such layer, between the norm before it and the next block."""
    if isinstance(layer, LinearAttention):
        yield from _linear_attention(layer, hidden_size)
    elif isinstance(layer, LightningAttention):
        yield from _lightning(layer, hidden_size)
    elif isinstance(layer, ShortConvolution):
        yield from _short_convolution(layer, hidden_size)
    elif layer.step_rank is None:
        yield from _mamba2(layer, hidden_size)
    else:
        yield from _mamba1(layer, layer.step_rank, hidden_size)


def _linear_attention(attention: LinearAttention, hidden_size: int) -> Iterator[Weight]:
    """As ``Qwen3NextGatedDeltaNet`` in transformers has it; ranks hold whole heads, as in vLLM.

    Twice by key heads: queries and keys. Twice by value heads: values and the gate on what was found, then the write
    strength and the decay of each head's state.
    """
    by_key, by_value = attention.key_heads, attention.value_heads
    key_width, value_width = by_key * attention.key_head_dim, by_value * attention.value_head_dim
    yield matrix(key_width, hidden_size, Role.ATTENTION, copies=2, active=2, shards=by_key)
    if attention.gate_rank is None:
        yield matrix(value_width, hidden_size, Role.ATTENTION, copies=2, active=2, shards=by_value)
        yield matrix(by_value, hidden_size, Role.GATE, copies=2, active=2, shards=by_value)
        yield vector(by_value, copies=2, active=2, shards=by_value)
    else:
        yield matrix(value_width, hidden_size, Role.ATTENTION, shards=by_value)
        yield matrix(by_value, hidden_size, Role.GATE, shards=by_value)
        yield matrix(attention.gate_rank, hidden_size, Role.GATE, copies=2, active=2, shards=1)
        yield matrix(value_width, attention.gate_rank, Role.GATE, copies=2, active=2, shards=by_value)
        yield vector(by_value + value_width, shards=by_value)
    for width, copies, shards in ((key_width, 2, by_key), (value_width, 1, by_value)):
        yield vector(width * attention.convolution_width, copies, active=copies, shards=shards)
    yield vector(attention.value_head_dim)
    yield matrix(hidden_size, value_width, Role.ATTENTION_OUTPUT, shards=by_value)


def _lightning(layer: LightningAttention, hidden_size: int) -> Iterator[Weight]:
    """As ``MiniMaxLightningAttention`` in transformers has it."""
    heads, width = layer.value_heads, layer.value_heads * layer.value_head_dim
    yield matrix(layer.projected, hidden_size, Role.ATTENTION, shards=heads)
    yield vector(width, shards=heads)
    yield matrix(hidden_size, width, Role.ATTENTION_OUTPUT, shards=heads)


def _mamba2(layer: StateSpace, hidden_size: int) -> Iterator[Weight]:
    """As ``Mamba2Mixer`` in transformers has it: one projection in; step, decay and skip of a number per head."""
    heads = layer.value_heads
    yield matrix(layer.projected, hidden_size, Role.ATTENTION, shards=heads)
    yield vector(layer.convolved * layer.convolution_width, shards=heads)
    if layer.convolution_bias:
        yield vector(layer.convolved, shards=heads)
    yield vector(heads, copies=3, active=3, shards=heads)
    if layer.inner_norms:
        yield vector(layer.inner, shards=heads)
    yield from _output(layer, hidden_size)
    if layer.projection_bias:
        yield vector(layer.projected, shards=heads)


def _mamba1(layer: StateSpace, step_rank: int, hidden_size: int) -> Iterator[Weight]:
    """As ``MambaMixer`` in transformers has it: steps and both projections of the state come from the inner width."""
    heads, inner, size = layer.value_heads, layer.inner, layer.state_size
    yield matrix(2 * inner, hidden_size, Role.ATTENTION, shards=heads)
    yield vector(inner * layer.convolution_width, shards=heads)
    if layer.convolution_bias:
        yield vector(inner, shards=heads)
    yield matrix(step_rank + 2 * size, inner, Role.GATE, shards=heads)
    yield matrix(inner, step_rank, Role.GATE, shards=heads)
    yield vector(inner, copies=2, active=2, shards=heads)  # the step's bias, and the skip
    yield vector(inner * size, shards=heads)
    if layer.inner_norms:
        yield vector(step_rank + 2 * size)
    yield from _output(layer, hidden_size)
    if layer.projection_bias:
        yield vector(2 * inner, shards=heads)


def _output(layer: StateSpace, hidden_size: int) -> Iterator[Weight]:
    yield matrix(hidden_size, layer.inner, Role.ATTENTION_OUTPUT, shards=layer.value_heads)
    if layer.projection_bias:
        yield vector(hidden_size)


def _short_convolution(layer: ShortConvolution, hidden_size: int) -> Iterator[Weight]:
    """As ``Lfm2ShortConv`` in transformers has it."""
    width = layer.value_heads
    yield matrix(layer.projected, hidden_size, Role.ATTENTION, shards=width)
    yield vector(width * layer.convolution_width, shards=width)
    yield matrix(hidden_size, width, Role.ATTENTION_OUTPUT, shards=width)
    if layer.bias:
        yield vector(layer.projected, shards=width)
        yield vector(width, shards=width)
        yield vector(hidden_size)
