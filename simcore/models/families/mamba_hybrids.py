"""Families whose layers are state spaces for the most part: Granite 4, Bamba, Falcon-H1 and Jamba.

State spaces are priced by the roofline: no kernels of them are measured.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from simcore.models.families.base import GroupedQueryConfig, Layer
from simcore.models.recurrent import StateSpace
from simcore.models.spec import DenseFeedForward, MixtureOfExperts

_BY_ROOFLINE = "State-space layers are priced by the roofline: none of their kernels is measured."


class StateSpaceHybridConfig(GroupedQueryConfig):
    """Such a family."""

    def notices(self) -> tuple[str, ...]:
        """How state spaces are priced."""
        return (_BY_ROOFLINE,)


class Mamba2HybridConfig(StateSpaceHybridConfig):
    """Mamba-2 layers by the keys of Bamba, which Granite 4 keeps."""

    mamba_n_heads: PositiveInt
    mamba_d_head: PositiveInt | Literal["auto"] = "auto"
    mamba_d_state: PositiveInt
    mamba_n_groups: PositiveInt = 1
    mamba_d_conv: PositiveInt = 4
    mamba_expand: PositiveInt = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    mamba_chunk_size: PositiveInt = 256

    def state_space(self) -> StateSpace:
        """The same in all layers that have it."""
        head_dim = self.mamba_d_head
        if head_dim == "auto":
            head_dim = self.mamba_expand * self.hidden_size // self.mamba_n_heads
        return StateSpace(
            self.mamba_n_heads,
            head_dim,
            self.mamba_d_state,
            self.mamba_n_groups,
            self.mamba_d_conv,
            convolution_bias=self.mamba_conv_bias,
            projection_bias=self.mamba_proj_bias,
        )


class BambaConfig(Mamba2HybridConfig):
    """Bamba: attention in the layers listed, a dense block in all."""

    model_types: ClassVar[tuple[str, ...]] = ("bamba",)
    architectures: ClassVar[tuple[str, ...]] = ("BambaForCausalLM",)

    intermediate_size: PositiveInt
    attn_layer_indices: list[NonNegativeInt]
    attn_rotary_emb: PositiveInt | None = None

    def layer(self, index: int) -> Layer:
        """Attention or a state space, and the dense block."""
        mixer = self.attention(index) if index in self.attn_layer_indices else self.state_space()
        return mixer, DenseFeedForward(self.intermediate_size)


class GraniteHybridConfig(Mamba2HybridConfig):
    """Granite 4: experts with a dense block that every token runs through, or the dense block alone."""

    model_types: ClassVar[tuple[str, ...]] = ("granitemoehybrid",)
    architectures: ClassVar[tuple[str, ...]] = ("GraniteMoeHybridForCausalLM",)

    intermediate_size: PositiveInt
    shared_intermediate_size: PositiveInt
    num_local_experts: NonNegativeInt
    num_experts_per_tok: NonNegativeInt
    layer_types: list[Literal["mamba", "attention"]]
    attention_bias: bool = False
    tie_word_embeddings: bool = True
    normalization_function: Literal["rmsnorm"] = "rmsnorm"
    mamba_d_state: PositiveInt = 256
    mamba_n_heads: PositiveInt = 128

    def layer(self, index: int) -> Layer:
        """Attention or a state space, and experts or a dense block."""
        mixer = self.attention(index) if self.layer_types[index] == "attention" else self.state_space()
        if not self.num_local_experts:
            return mixer, DenseFeedForward(self.shared_intermediate_size)
        return mixer, MixtureOfExperts(
            self.num_local_experts, self.num_experts_per_tok, self.intermediate_size, self.shared_intermediate_size
        )

    def notices(self) -> tuple[str, ...]:
        """Some are of attention alone."""
        return super().notices() if "mamba" in self.layer_types else ()


class FalconH1Config(StateSpaceHybridConfig):
    """Falcon-H1: a state space and attention side by side read one norm, then comes the dense block.

    They stand one after the other here, the state space as a layer of its own without a norm, so that there are twice
    the layers.
    """

    model_types: ClassVar[tuple[str, ...]] = ("falcon_h1",)
    architectures: ClassVar[tuple[str, ...]] = ("FalconH1ForCausalLM",)

    intermediate_size: PositiveInt
    mamba_d_ssm: PositiveInt
    mamba_n_heads: PositiveInt
    mamba_d_head: PositiveInt | Literal["auto"] = "auto"
    mamba_d_state: PositiveInt
    mamba_n_groups: PositiveInt = 1
    mamba_d_conv: PositiveInt = 4
    mamba_expand: PositiveInt = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    mamba_rms_norm: bool = False
    mamba_norm_before_gate: bool = True
    mamba_use_mlp: Literal[True] = True
    mamba_chunk_size: PositiveInt = 256
    attention_bias: bool = False
    mlp_bias: bool = False
    projectors_bias: bool = False
    mlp_expansion_factor: PositiveInt | None = None
    attn_layer_indices: None = None

    def layers(self) -> Iterator[Layer]:
        """Each in two."""
        state_space = StateSpace(
            self.mamba_n_heads,
            self.mamba_d_ssm // self.mamba_n_heads,
            self.mamba_d_state,
            self.mamba_n_groups,
            self.mamba_d_conv,
            convolution_bias=self.mamba_conv_bias,
            projection_bias=self.mamba_proj_bias,
            inner_norms=self.mamba_rms_norm,
        )
        for index in range(self.num_hidden_layers):
            yield state_space, None
            yield self.layer(index)

    def layer(self, index: int) -> Layer:
        """Attention and the dense block, the same in all layers."""
        return self.attention(index), DenseFeedForward(self.intermediate_size, bias=self.mlp_bias)

    def attention_traits(self) -> dict[str, bool]:
        """One switch for the biases of all four projections."""
        return {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def particulars(self) -> dict[str, Any]:
        """Of a layer in two, a norm each."""
        return {"norms_per_layer": 1}


class JambaConfig(StateSpaceHybridConfig):
    """Jamba: Mamba-1, attention and experts in every so-many-th layer each."""

    model_types: ClassVar[tuple[str, ...]] = ("jamba",)
    architectures: ClassVar[tuple[str, ...]] = ("JambaForCausalLM",)

    intermediate_size: PositiveInt
    attn_layer_period: PositiveInt
    attn_layer_offset: NonNegativeInt
    expert_layer_period: PositiveInt
    expert_layer_offset: NonNegativeInt
    num_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    mamba_d_state: PositiveInt = 16
    mamba_d_conv: PositiveInt = 4
    mamba_expand: PositiveInt = 2
    mamba_dt_rank: PositiveInt | Literal["auto"] = "auto"
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    mamba_inner_layernorms: bool = True

    def layer(self, index: int) -> Layer:
        """Attention or a state space, and experts or a dense block."""
        attends = index % self.attn_layer_period == self.attn_layer_offset
        mixer = self.attention(index) if attends else self.state_space()
        if self.num_experts == 1 or index % self.expert_layer_period != self.expert_layer_offset:
            return mixer, DenseFeedForward(self.intermediate_size)
        return mixer, MixtureOfExperts(self.num_experts, self.num_experts_per_tok, self.intermediate_size)

    def attention_traits(self) -> dict[str, bool]:
        """Positions are known to state spaces alone."""
        return {"rotary": False}

    def state_space(self) -> StateSpace:
        """The same in all layers that have it; a sixteenth of the hidden size where the step's rank is "auto"."""
        rank = -(-self.hidden_size // 16) if self.mamba_dt_rank == "auto" else self.mamba_dt_rank
        return StateSpace(
            self.mamba_expand * self.hidden_size,
            1,
            self.mamba_d_state,
            convolution_width=self.mamba_d_conv,
            step_rank=rank,
            convolution_bias=self.mamba_conv_bias,
            projection_bias=self.mamba_proj_bias,
            inner_norms=self.mamba_inner_layernorms,
        )
