"""The size of a low-rank adapter (LoRA, Hu et al., ICLR 2022): two thin matrices beside each that it adapts."""

from dataclasses import dataclass

from simcore.models.spec import Attention, DenseFeedForward, ModelSpec


class NotAdaptableError(ValueError):
    """A model has layers whose adapters are not known."""


@dataclass(frozen=True, slots=True)
class AdapterShape:
    """One adapter on one tensor-parallel rank: its numbers, and the kernels of a step that applies adapters."""

    parameters: int
    launches: int


def adapter_shape(spec: ModelSpec, rank: int, ranks: int, feed_forward: bool) -> AdapterShape:
    """An adapter of a ``rank`` on the attention of each layer, and on its ``feed_forward`` block too.

    Of a matrix that is split by its outputs every tensor-parallel rank has the first thin matrix whole and its part of
    the second; of one that is split by its inputs the other way round (vLLM without fully sharded adapters). Queries,
    keys and values are adapted in one pair of kernels, gate and up projection too. Raises ``NotAdaptableError``.
    """
    hidden, parameters, launches = spec.hidden_size, 0, 0
    for group in spec.layer_groups:
        attention, block = group.attention, group.feed_forward
        if not isinstance(attention, Attention) or (feed_forward and not isinstance(block, DenseFeedForward)):
            raise NotAdaptableError(f"{spec.name} has layers other than plain attention and dense blocks")
        heads, keys = attention.query_heads, attention.kv_heads
        outputs = [heads * attention.head_dim, keys * attention.head_dim, keys * attention.value_head_dim]
        numbers = sum(hidden + -(-each // ranks) for each in outputs)
        numbers += -(-heads * attention.value_head_dim // ranks) + hidden
        kernels = 4
        if feed_forward and isinstance(block, DenseFeedForward):
            inner = -(-block.intermediate_size // ranks)
            numbers += (2 if block.gated else 1) * (hidden + inner) + inner + hidden
            kernels += 4
        parameters += group.count * rank * numbers
        launches += group.count * kernels
    return AdapterShape(parameters, launches)
