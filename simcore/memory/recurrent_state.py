"""What requests keep of layers of linear attention: a state each instead of keys and values."""

from collections import Counter

from simcore.models import ModelSpec, Recurrent

STATE_BYTES = 4
"""States are kept in 32 bits (``mamba_ssm_dtype`` of Qwen3-Next's published configuration; recalled)."""
CONVOLUTION_BYTES = 2
"""The last inputs of the convolution are kept as activations are, in 16 bits."""


def state_bytes(attention: Recurrent, ranks: int = 1) -> int:
    """Bytes that a request has in one layer, on one of ``ranks`` that share out the key heads."""
    heads = -(-attention.value_heads // ranks)
    state = heads * attention.key_head_dim * attention.value_head_dim * STATE_BYTES
    inputs = (attention.convolution_width - 1) * -(-attention.convolved // ranks)
    return state + inputs * CONVOLUTION_BYTES


def linear_attention_counts(spec: ModelSpec) -> dict[Recurrent, int]:
    """How many layers have each kind of linear attention, in the order in which the model's groups name them."""
    counts: Counter[Recurrent] = Counter()
    for group in spec.layer_groups:
        if isinstance(group.attention, Recurrent):
            counts[group.attention] += group.count
    return dict(counts)


def request_state_bytes(spec: ModelSpec, ranks: int = 1, layers: range | None = None) -> int:
    """Bytes that a request has in all layers, or in those of a pipeline stage, on one rank."""
    stage = spec if layers is None else spec.stage(layers)
    return sum(count * state_bytes(attention, ranks) for attention, count in linear_attention_counts(stage).items())
