"""The weights of a decoder, fused as the forward pass wants them."""

from dataclasses import dataclass

import torch

from kernels.moe_reference import ExpertWeights
from live.model.config import DecoderConfig
from live.model.linear import FloatLinear, Linear, check_weight_format, make_linear
from live.weights.source import WeightSource
from simcore.models import Attention, DenseFeedForward, MixtureOfExperts


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """A gated feed-forward block; ``gate_up`` has the rows of the gate, then those of the up projection."""

    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class RoutedWeights:
    """Experts: the router [experts, hidden], and how many of them a token visits."""

    router: Linear
    experts: ExpertWeights
    experts_per_token: int


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer; ``qkv`` has the rows of queries, keys and values, norms per head are None where there are none."""

    attention: Attention
    input_norm: torch.Tensor
    qkv: Linear
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    output: Linear
    middle_norm: torch.Tensor
    feed_forward: DenseWeights | RoutedWeights


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """A whole model; ``head`` shares the embedding's memory where the two are tied."""

    config: DecoderConfig
    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    final_norm: torch.Tensor
    head: Linear

    @property
    def dtype(self) -> torch.dtype:
        """The type of activations."""
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.embedding.device


# How Hugging Face names the parts of routed layers, by family: prefix, gate, up, down.
_EXPERT_NAMES = {
    "mixtral": ("block_sparse_moe", "w1", "w3", "w2"),
    "qwen3_moe": ("mlp", "gate_proj", "up_proj", "down_proj"),
}


def load_weights(
    config: DecoderConfig, source: WeightSource, dtype: torch.dtype, device: torch.device, weight_format: str = "plain"
) -> DecoderWeights:
    """All weights of a model on a device; the matrices of attention and dense blocks in ``weight_format``.

    Raises ``FileError`` for a tensor that is missing or has another shape, ``InputError`` for a format that cannot be.
    """
    check_weight_format(weight_format, dtype)
    return _Assembly(config, source, dtype, device, weight_format).decoder()


class _Assembly:
    def __init__(
        self, config: DecoderConfig, source: WeightSource, dtype: torch.dtype, device: torch.device, weight_format: str
    ) -> None:
        self.config, self.source = config, source
        self.dtype, self.device, self.weight_format = dtype, device, weight_format
        self.hidden = config.spec.hidden_size

    def tensor(self, name: str, *shape: int) -> torch.Tensor:
        return self.source.tensor(name, shape).to(self.device, self.dtype)

    def linear(self, prefix: str, names: tuple[str, ...], rows: tuple[int, ...], width: int, bias: bool) -> Linear:
        """One matrix of several that have the same input."""
        sizes = list(zip(names, rows, strict=True))
        weights = [self.tensor(f"{prefix}.{name}.weight", count, width) for name, count in sizes]
        biases = [self.tensor(f"{prefix}.{name}.bias", count) for name, count in sizes] if bias else []
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        return make_linear(weight, torch.cat(biases) if biases else None, self.weight_format)

    def decoder(self) -> DecoderWeights:
        spec = self.config.spec
        # The least that hostile metadata must not make large: a layer that is not there ends the loop.
        embedding = self.tensor("model.embed_tokens.weight", spec.vocabulary_size, self.hidden)
        layers = tuple(self.layer(index) for index in range(spec.layers))
        norm = self.tensor("model.norm.weight", self.hidden)
        tied = spec.tied_embeddings or not self.source.has("lm_head.weight")
        head = embedding if tied else self.tensor("lm_head.weight", spec.vocabulary_size, self.hidden)
        return DecoderWeights(self.config, embedding, layers, norm, FloatLinear(head))

    def layer(self, index: int) -> LayerWeights:
        prefix = f"model.layers.{index}"
        attention = self.config.layers[index].attention
        assert isinstance(attention, Attention)
        queries, keys = attention.query_heads * attention.head_dim, attention.kv_heads * attention.head_dim
        names, own = ("q_proj", "k_proj", "v_proj"), f"{prefix}.self_attn"
        normed = attention.query_key_norm
        return LayerWeights(
            attention=attention,
            input_norm=self.tensor(f"{prefix}.input_layernorm.weight", self.hidden),
            qkv=self.linear(own, names, (queries, keys, keys), self.hidden, attention.projection_bias),
            query_norm=self.tensor(f"{own}.q_norm.weight", attention.head_dim) if normed else None,
            key_norm=self.tensor(f"{own}.k_norm.weight", attention.head_dim) if normed else None,
            output=self.linear(own, ("o_proj",), (self.hidden,), queries, attention.output_bias),
            middle_norm=self.tensor(f"{prefix}.post_attention_layernorm.weight", self.hidden),
            feed_forward=self.feed_forward(prefix, index),
        )

    def feed_forward(self, prefix: str, index: int) -> DenseWeights | RoutedWeights:
        block = self.config.layers[index].feed_forward
        if isinstance(block, MixtureOfExperts):
            return self.routed(prefix, block)
        assert isinstance(block, DenseFeedForward)
        width, own = block.intermediate_size, f"{prefix}.mlp"
        gate_up = self.linear(own, ("gate_proj", "up_proj"), (width, width), self.hidden, block.bias)
        return DenseWeights(gate_up, self.linear(own, ("down_proj",), (self.hidden,), width, block.bias))

    def routed(self, prefix: str, block: MixtureOfExperts) -> RoutedWeights:
        part, gate, up, down = _EXPERT_NAMES[self.config.spec.family]
        own, width = f"{prefix}.{part}", block.expert_intermediate_size
        router = self.tensor(f"{own}.gate.weight", block.experts, self.hidden)
        # One projection after the other, as a source may hold that of all experts in one piece.
        inner: dict[str, torch.Tensor] = {}
        for name in (gate, up):
            parts = [
                self.tensor(f"{own}.experts.{expert}.{name}.weight", width, self.hidden)
                for expert in range(block.experts)
            ]
            inner[name] = torch.stack(parts)
        outer = [
            self.tensor(f"{own}.experts.{expert}.{down}.weight", self.hidden, width) for expert in range(block.experts)
        ]
        experts = ExpertWeights(torch.cat([inner[gate], inner[up]], dim=1), torch.stack(outer))
        return RoutedWeights(FloatLinear(router), experts, block.experts_per_token)
