"""Which inputs of GEMMs a layer quantises, and which of them by kernels of their own."""

from simcore.engines import EngineKernels, Producer
from simcore.models import DenseFeedForward, LatentAttention, LayerGroup, LinearAttention, Recurrent, heads_per_rank
from simcore.models.weight_formats import Role, WeightFormat

Input = tuple[Producer, int]
"""What makes an input, and its numbers per token and rank."""


def apart_from(inputs: list[Input], stored: WeightFormat, engine: EngineKernels) -> list[Input]:
    """Those inputs that are not written quantised by what makes them."""
    fused = engine.fusion.quantisation.get(stored.kernels or stored.name, [])
    return [one for one in inputs if one[0] not in fused]


def quantised_inputs(
    group: LayerGroup, stored: WeightFormat, hidden: int, ranks: int, engine: EngineKernels
) -> list[Input]:
    """Numbers per token and rank of each input of GEMMs that a layer brings to the weights' numbers, and what makes it.

    Each is read in 16 bits and written in 8. There are two of attention, two of the MLP or experts, and two more each
    of shared experts and latent attention, whose numbers are left out where they are few or the same.
    """
    attention, block = group.attention, group.feed_forward
    found: list[Input] = []
    if attention is not None and Role.ATTENTION in stored.of:
        found.append(("norm", hidden))
        if isinstance(attention, LatentAttention):
            found.append(("norm", 0))
        fused = engine.fuses_linear_attention_projections
        if isinstance(attention, LinearAttention) and attention.apart and not fused:
            found += [("norm", hidden)]
    if attention is not None and Role.ATTENTION_OUTPUT in stored.of:
        heads = attention.value_heads if isinstance(attention, Recurrent) else attention.query_heads
        found += [("attention", heads_per_rank(heads, ranks) * attention.value_head_dim)]
    if block is None:
        return found
    if isinstance(block, DenseFeedForward):
        own: list[Input] = [("norm", hidden), ("activation", -(-block.intermediate_size // ranks))]
        return found + own * (Role.LINEAR in stored.of)
    if Role.EXPERT in stored.of:
        width = block.experts_per_token * -(-block.expert_intermediate_size // ranks)
        found += [("permutation", hidden), ("permutation", width)]
    apart = not engine.fusion.shared_expert_tokens  # beside routed experts they take no time
    if Role.LINEAR in stored.of and block.shared_intermediate_size and apart:
        found += [("norm", 0), ("activation", -(-block.shared_intermediate_size // ranks))]
    return found
