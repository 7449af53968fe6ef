"""Every weight tensor of a model, and what follows from their sizes: parameters, bytes, and a rank's share of them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from simcore.core.errors import InputError
from simcore.models.recurrent import Recurrent
from simcore.models.recurrent_weights import recurrent_weights
from simcore.models.spec import (
    Attention,
    CachedAttention,
    DenseFeedForward,
    FeedForward,
    LatentAttention,
    MixtureOfExperts,
    ModelSpec,
)
from simcore.models.tensors import Weight, matrix, vector
from simcore.models.weight_formats import EXPERTS, Role, WeightFormat, weight_format


class ParameterCount(NamedTuple):
    """Parameters of a model, and those at work for one token (they differ by the experts it is not sent to)."""

    total: int
    active: int


def weights(spec: ModelSpec, layers: range | None = None) -> Iterator[Weight]:
    """The tensors of the model's checkpoint; fused and separate projections hold the same numbers.

    Of a pipeline stage, those of its ``layers`` (counted from 0), with the input tables on the first stage and the
    head on the last; a head tied to the embedding is on both.
    """
    layers = range(spec.layers) if layers is None else layers
    first, last = layers.start == 0, layers.stop == spec.layers
    width = spec.embedding_size or spec.hidden_size
    if first and not spec.tied_embeddings:
        yield matrix(spec.vocabulary_size, width, Role.INPUT_EMBEDDING)
    if last or (first and spec.tied_embeddings):
        yield matrix(spec.vocabulary_size, width, Role.HEAD)
    if spec.embedding_size is not None and first:
        yield matrix(spec.hidden_size, width, shards=1)
    if spec.embedding_size is not None and last:
        yield matrix(width, spec.hidden_size, shards=1)
    if spec.learned_positions and first:
        yield matrix(spec.learned_positions, spec.hidden_size, Role.INPUT_EMBEDDING, shards=1)
    norms = len(layers) * spec.norms_per_layer + (spec.final_norm and last)
    yield vector(spec.hidden_size).times(norms * (2 if spec.norm_bias else 1))
    for group in spec.of_layers(layers):
        for weight in (
            *_mixer(group.attention, spec.hidden_size),
            *_feed_forward(group.feed_forward, spec.hidden_size),
        ):
            yield replace(weight.times(group.count), kept=weight.role in group.kept)


def count_parameters(spec: ModelSpec) -> ParameterCount:
    """Total and active parameters, embedding and head in both, vision tower and multi-token prediction in neither.

    Publishers count active parameters in two ways: all but the unused experts, as here, or without the input
    embedding as well, of which a token reads one row; ``input_embedding_parameters`` is the difference.
    """
    tensors = list(weights(spec))
    return ParameterCount(
        total=sum(weight.elements * weight.copies for weight in tensors),
        active=sum(weight.elements * weight.active for weight in tensors),
    )


def input_embedding_parameters(spec: ModelSpec) -> int:
    """Parameters of the tables that are only looked up: token embedding (unless tied to the head) and positions."""
    return sum(weight.elements for weight in weights(spec) if weight.role is Role.INPUT_EMBEDDING)


def weight_bytes(spec: ModelSpec, dtype: str | None = None) -> int:
    """Bytes of all weights in the format ``dtype``, by default the one that the model was published in.

    The matrices of attention and feed-forward that the format is for are in it; all else is in 16 bits unless all is
    in 32. Scales are part of the bytes, not of the parameters.

    Raises ``UnknownNameError`` for an unknown format, ``InputError`` for one for experts in a model without any.
    """
    chosen = _checked_format(spec, dtype)
    own = chosen.name == spec.dtype
    return sum(weight.copies * _tensor_bytes(weight, chosen, own) for weight in weights(spec))


def rank_weight_bytes(
    spec: ModelSpec, dtype: str | None, ranks: int, layers: range | None = None, data: int = 1, expert: int = 1
) -> int:
    """Bytes of the weights that one of ``ranks`` tensor-parallel ranks holds, of the whole model or of some layers.

    Matrices are split (Megatron-LM, arXiv:1909.08053), those of keys and values by heads, of which a rank has at least
    one; norms, routers, gates of shared experts, learned positions and the projections down to a latent are held whole
    by every rank, as in vLLM. Experts are split over the ranks of all ``data`` groups: dealt out to ``expert`` of
    them, whose others share each. Errors are those of ``weight_bytes``.
    """
    chosen = _checked_format(spec, dtype)
    total, own = 0, chosen.name == spec.dtype
    for weight in weights(spec, layers):
        copies, over = weight.copies, ranks
        if weight.role is Role.EXPERT:
            copies, over = -(-copies // expert), ranks * data // expert
        total += copies * -(-_tensor_bytes(weight, chosen, own) // min(over, weight.shards or over))
    return total


def _checked_format(spec: ModelSpec, dtype: str | None) -> WeightFormat:
    chosen = weight_format(spec.dtype if dtype is None else dtype)
    if chosen.of == EXPERTS and not any(weight.role is Role.EXPERT for weight in weights(spec)):
        expected = f"another one for {spec.name}: {chosen.name} is for experts, which it lacks"
        raise InputError("precision.weights", chosen.name, expected)
    return chosen


def _tensor_bytes(weight: Weight, chosen: WeightFormat, own: bool) -> int:
    """Bytes of one copy; what the checkpoint leaves out counts in its ``own`` format alone."""
    if weight.role in chosen.of and not (own and weight.kept):
        return chosen.matrix_bytes(weight.rows, weight.columns)
    return weight.elements * chosen.others_bytes


def _mixer(attention: CachedAttention | Recurrent | None, hidden_size: int) -> Iterator[Weight]:
    """The block of a layer that mixes tokens."""
    if isinstance(attention, Attention):
        yield from _attention(attention, hidden_size)
    elif isinstance(attention, LatentAttention):
        yield from _latent_attention(attention, hidden_size)
    elif attention is not None:
        yield from recurrent_weights(attention, hidden_size)


def _attention(attention: Attention, hidden_size: int) -> Iterator[Weight]:
    gate_width = attention.value_head_dim if attention.output_gate else 0
    query_width = attention.query_heads * (attention.head_dim + gate_width)
    key_width = attention.kv_heads * attention.head_dim
    value_width = 0 if attention.keys_as_values else attention.kv_heads * attention.value_head_dim
    heads = attention.kv_heads
    for width, shards in ((query_width, None), (key_width, heads), (value_width, heads)):
        yield matrix(width, hidden_size, Role.ATTENTION, shards=shards)
        if attention.projection_bias:
            yield vector(width, shards=shards)
    yield matrix(hidden_size, attention.query_heads * attention.value_head_dim, Role.ATTENTION_OUTPUT)
    if attention.output_bias:
        yield vector(hidden_size)
    if attention.norm_across_heads:
        yield vector(attention.query_heads * attention.head_dim)
        yield vector(key_width)
    elif attention.query_key_norm:
        yield vector(attention.head_dim, copies=2, active=2)
    if attention.sinks:
        yield vector(attention.query_heads, shards=None)


def _latent_attention(attention: LatentAttention, hidden_size: int) -> Iterator[Weight]:
    query_width = attention.query_heads * (attention.nope_head_dim + attention.rope_head_dim)
    if attention.q_lora_rank is None:
        yield matrix(query_width, hidden_size, Role.ATTENTION)
    else:
        yield matrix(attention.q_lora_rank, hidden_size, Role.ATTENTION, shards=1)
        yield vector(attention.q_lora_rank)
        yield matrix(query_width, attention.q_lora_rank, Role.ATTENTION)
    yield matrix(attention.kv_lora_rank + attention.rope_head_dim, hidden_size, Role.ATTENTION, shards=1)
    yield vector(attention.kv_lora_rank)
    if attention.index_heads:
        width = attention.index_head_dim
        yield matrix(attention.index_heads * width, attention.q_lora_rank or hidden_size, Role.GATE, shards=1)
        yield matrix(width, hidden_size, Role.GATE, shards=1)
        yield matrix(attention.index_heads, hidden_size, Role.GATE, shards=1)
        yield vector(width, copies=2, active=2)
    up_width = attention.query_heads * (attention.nope_head_dim + attention.value_head_dim)
    yield matrix(up_width, attention.kv_lora_rank, Role.ATTENTION)
    yield matrix(hidden_size, attention.query_heads * attention.value_head_dim, Role.ATTENTION_OUTPUT)


def _feed_forward(block: FeedForward | None, hidden_size: int) -> Iterator[Weight]:
    if isinstance(block, DenseFeedForward):
        yield from _dense(block, hidden_size)
    elif block is not None:
        yield from _experts(block, hidden_size)


def _experts(block: MixtureOfExperts, hidden_size: int) -> Iterator[Weight]:
    yield matrix(block.experts, hidden_size, Role.ROUTER, shards=1)
    if block.router_bias:
        yield vector(block.experts)
    if block.shared_intermediate_size:
        yield from _dense(DenseFeedForward(block.shared_intermediate_size, block.gated, block.bias), hidden_size)
        if block.shared_gate:
            yield matrix(1, hidden_size, Role.GATE, shards=1)
    expert = DenseFeedForward(block.expert_intermediate_size, block.gated, block.bias)
    if block.latent_size is not None:
        yield matrix(block.latent_size, hidden_size, shards=1)
        yield matrix(hidden_size, block.latent_size, shards=1)
    for weight in _dense(expert, block.latent_size or hidden_size):
        role = Role.EXPERT if weight.role is Role.LINEAR else weight.role
        copies, active = weight.copies * block.experts, weight.active * block.experts_per_token
        yield replace(weight, role=role, copies=copies, active=active)


def _dense(block: DenseFeedForward, hidden_size: int) -> Iterator[Weight]:
    into = 2 if block.gated else 1
    yield matrix(block.intermediate_size, hidden_size, copies=into, active=into)
    yield matrix(hidden_size, block.intermediate_size)
    if block.bias:
        yield vector(block.intermediate_size, copies=into, active=into, shards=None)
        yield vector(hidden_size)
