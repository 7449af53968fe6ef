"""Nemotron-H and Nemotron 3: state spaces, attention, dense blocks and experts, one of them a layer."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import AliasChoices, Field, NonNegativeInt, PositiveInt, ValidationInfo, field_validator, model_validator

from simcore.models.families.base import Layer
from simcore.models.families.mamba_hybrids import StateSpaceHybridConfig
from simcore.models.recurrent import StateSpace
from simcore.models.spec import DenseFeedForward, FeedForward, MixtureOfExperts

_LETTERS = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}


class NemotronHConfig(StateSpaceHybridConfig):
    """Nemotron-H and Nemotron 3: a layer is one block, by the letters of ``hybrid_override_pattern``.

    M is a state space, * attention, - a dense block, E experts; dense block and experts have no gate. Experts may work
    on a latent of ``moe_latent_size``.
    """

    model_types: ClassVar[tuple[str, ...]] = ("nemotron_h",)
    architectures: ClassVar[tuple[str, ...]] = ("NemotronHForCausalLM",)

    hybrid_override_pattern: str
    head_dim: PositiveInt = Field(validation_alias=AliasChoices("head_dim", "attention_head_dim"))
    intermediate_size: PositiveInt
    mamba_num_heads: PositiveInt
    mamba_head_dim: PositiveInt
    ssm_state_size: PositiveInt
    n_groups: PositiveInt
    conv_kernel: PositiveInt = 4
    expand: PositiveInt = 2
    use_conv_bias: bool = True
    use_bias: bool = False
    mamba_proj_bias: bool = False
    mlp_bias: bool = False
    attention_bias: bool = False
    sliding_window: None = None
    n_routed_experts: PositiveInt | None = None
    num_experts_per_tok: PositiveInt | None = None
    moe_intermediate_size: PositiveInt | None = None
    moe_shared_expert_intermediate_size: PositiveInt | None = None
    n_shared_experts: NonNegativeInt | None = None
    moe_latent_size: PositiveInt | None = None
    moe_shared_expert_overlap: bool = False
    time_step_rank: PositiveInt | None = None
    layers_block_type: list[str] | None = None
    mtp_layers_block_type: list[str] | None = None

    def layer(self, index: int) -> Layer:
        """One block by its letter."""
        letter = self.hybrid_override_pattern[index]
        if letter == "M":
            return self.state_space(), None
        if letter == "*":
            return self.attention(index), None
        return None, self.feed_forward(letter)

    def state_space(self) -> StateSpace:
        """The same in all layers that have it."""
        return StateSpace(
            self.mamba_num_heads,
            self.mamba_head_dim,
            self.ssm_state_size,
            self.n_groups,
            self.conv_kernel,
            convolution_bias=self.use_conv_bias,
            projection_bias=self.use_bias or self.mamba_proj_bias,
        )

    def feed_forward(self, letter: str) -> FeedForward:
        """Experts (E) or a dense block."""
        if letter == "-" or self.n_routed_experts is None:
            return DenseFeedForward(self.intermediate_size, gated=False, bias=self.mlp_bias)
        return MixtureOfExperts(
            self.n_routed_experts,
            self.num_experts_per_tok or 1,
            self.moe_intermediate_size or self.intermediate_size,
            (self.n_shared_experts or 0) * (self.moe_shared_expert_intermediate_size or 0),
            gated=False,
            bias=self.mlp_bias,
            router_bias=True,
            latent_size=self.moe_latent_size,
        )

    def attention_traits(self) -> dict[str, bool]:
        """Positions are known to state spaces alone."""
        return {"rotary": False, "projection_bias": self.attention_bias, "output_bias": self.attention_bias}

    def particulars(self) -> dict[str, Any]:
        """A norm before each block."""
        return {"norms_per_layer": 1}

    @model_validator(mode="before")
    @classmethod
    def _letters_of_names(cls, given: Any) -> Any:
        """Newer files name the blocks of layers (``layers_block_type``) and need not count them."""
        names = given.get("layers_block_type") if isinstance(given, Mapping) else None
        if not isinstance(names, list) or not set(map(str, names)) <= _LETTERS.keys():
            return given
        pattern = "".join(_LETTERS[name] for name in names)
        return {"num_hidden_layers": len(names), "hybrid_override_pattern": pattern, **given}

    @field_validator("hybrid_override_pattern")
    @classmethod
    def _a_letter_for_each_layer(cls, pattern: str, info: ValidationInfo) -> str:
        layers = info.data.get("num_hidden_layers")
        if set(pattern) - set("M*-E") or (layers is not None and len(pattern) != layers):
            raise ValueError(f"one of M, *, - and E for each of the {layers} layers")
        if "*" not in pattern:
            raise ValueError("* for one layer at least, as a request without a KV cache is not modelled")
        return pattern
