"""Llama-Nemotron models found by architecture search: each layer has widths of its own, or a block less."""

from typing import ClassVar, Literal

from pydantic import BaseModel, NonNegativeInt, PositiveFloat, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer
from simcore.models.spec import Attention, DenseFeedForward


class _SearchedAttention(BaseModel):
    n_heads_in_group: PositiveInt | None = None
    no_op: bool = False
    replace_with_linear: Literal[False] = False
    window_length: PositiveInt | None = None
    num_sink_tokens: NonNegativeInt | None = None


class _SearchedFeedForward(BaseModel):
    ffn_mult: PositiveFloat | None = None
    no_op: bool = False
    replace_with_linear: Literal[False] = False


class _SearchedBlock(BaseModel):
    attention: _SearchedAttention
    ffn: _SearchedFeedForward


class NemotronNasConfig(GroupedQueryConfig):
    """Llama-3.x-Nemotron Super and Ultra; a layer that has one block alone still counts two norms (0.002%)."""

    model_types: ClassVar[tuple[str, ...]] = ("nemotron-nas",)
    architectures: ClassVar[tuple[str, ...]] = ("DeciLMForCausalLM",)

    num_key_value_heads: PositiveInt | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    block_configs: list[_SearchedBlock]

    def layer(self, index: int) -> Layer:
        """What ``block_configs`` says of it."""
        block = self.block_configs[index]
        attention: Attention | None = None
        if not block.attention.no_op:
            head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
            attention = Attention(
                self.num_attention_heads,
                self.num_attention_heads // (block.attention.n_heads_in_group or 1),
                head_dim,
                head_dim,
                self.visible_window(block.attention.window_length),
                projection_bias=self.attention_bias,
                output_bias=self.attention_bias,
            )
        if block.ffn.no_op:
            return attention, None
        return attention, DenseFeedForward(_width(block.ffn.ffn_mult or 1.0, self.hidden_size), bias=self.mlp_bias)


def _width(multiple: float, hidden_size: int) -> int:
    """Two thirds of the hidden size times a multiple, rounded up to 256 (vLLM, models/nemotron_nas.py; recalled)."""
    return -(-int(2 * multiple * hidden_size / 3) // 256) * 256
