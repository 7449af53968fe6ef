"""Which price a kernel takes: the calibrated one where the profile has its shape and dtype, else the roofline's."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from simcore.core.errors import UnknownNameError
from simcore.cost.assumptions import ROUTING
from simcore.cost.attention import AttentionShape, AttentionWork
from simcore.cost.calibrated import KernelProfile, LinearAttentionPrice
from simcore.cost.calibrated.profile import MLA_HEAD_DIM
from simcore.cost.collectives import AlphaBetaPrice, alpha_beta_constants, link_share
from simcore.cost.fabric import Fabric, measured_topology
from simcore.cost.linear_attention import LinearAttentionWork
from simcore.cost.operators import MEASURED_AS, ExpertMatrices, Matrix, Operator, QuantisedInputs
from simcore.cost.prices import (
    AttentionPrices,
    ElementwisePrice,
    Fastest,
    ImbalancedExpertPrice,
    Price,
    PriceBeside,
    RooflineCollective,
    RooflinePrice,
    SustainedPrice,
)
from simcore.cost.quantised_prices import QuantisationPrice, QuantisedInputPrice
from simcore.cost.roofline import Roofline
from simcore.engines import ASSUMED_KERNELS, EngineKernels, Padding
from simcore.models.weight_formats import weight_format

_TABLE_DTYPES = {
    "fp32": "fp32",
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "fp8-channel": "fp8",
    "fp8-block": "fp8-block",
    "nvfp4": "nvfp4",
    "int8": "int8",
    "int4": "int4",
    "mxfp4": "mxfp4",
}
"""The dtype of a profile's tables that stands for a weight format; others are priced by roofline."""
_EXPERT_DTYPES = {"mxfp4": ("mxfp4", "mxfp4-mxfp8")}
"""Dtypes of a profile's experts of which an engine takes the faster."""
_KV_DTYPES = {"fp32": "fp32", "bf16": "bf16", "fp16": "bf16", "fp8": "fp8"}
AUTO = "auto"
NARROWEST = 128
"""Inputs and outputs of a GEMM that takes next to nothing beside what its module does before."""


def table_dtype(weights: str) -> str | None:
    """The dtype of a profile's tables that prices matrices of a weight format, None where the roofline must do."""
    return _TABLE_DTYPES.get(weight_format(weights).kernels or weights)


def expert_dtypes(dtype: str) -> tuple[str, ...]:
    """The dtypes of a profile's experts of which an engine takes the faster, for one of ``table_dtype``."""
    return _EXPERT_DTYPES.get(dtype, (dtype,))


@dataclass(frozen=True, slots=True)
class KernelPrices:
    """Prices of the kernels of one accelerator: by ``profile`` as far as it goes, by ``roofline`` beyond.

    ``fallback_profiles`` are other profiles of the accelerator, by the kernel kinds that ``profile`` lacks
    (``profile_choice``). Collectives that neither has are priced by constants of their kind of link if
    ``fitted_collectives``. ``fabric`` is that of the accelerator unless given. ``routing`` is how tokens spread over
    experts, as the tables name it. ``expert_kernels`` chooses among the kernels of experts that were measured for one
    dtype; "auto" takes what the ``engine`` takes by default. Raises ``UnknownNameError`` for kernels that were not.
    """

    roofline: Roofline
    profile: KernelProfile | None = None
    fallback_profiles: Mapping[str, KernelProfile] = field(default_factory=dict)
    fabric: Fabric | None = None
    fitted_collectives: bool = False
    expert_kernels: str = AUTO
    routing: str = ROUTING
    engine: EngineKernels = ASSUMED_KERNELS

    @property
    def links(self) -> Fabric:
        """How the accelerators reach each other."""
        return self.fabric or Fabric.of(self.roofline.accelerator)

    def profile_of(self, kind: str) -> KernelProfile | None:
        """The profile that prices a kernel kind: the run's own, or the one that lends what this lacks."""
        return self.fallback_profiles.get(kind, self.profile)

    def operator(self, operator: Operator) -> Price:
        """The price of an operator over tokens."""
        price = self._of_kernel(operator)
        if not operator.beside_tokens:
            return price
        weights = replace(operator, flops_per_token=0.0, launches=0, small_launches=0)
        return PriceBeside(price, RooflinePrice(self.roofline, weights), operator.beside_tokens)

    def _of_kernel(self, operator: Operator) -> Price:
        price = self._calibrated(operator)
        if price is None:
            return RooflinePrice(self.roofline, operator)
        rate = self._sustained_flops_per_s(operator)
        return price if rate is None else SustainedPrice(price, operator.flops_per_token / rate)

    def _sustained_flops_per_s(self, operator: Operator) -> float | None:
        """The rate that GEMMs keep up, None where none was measured.

        A type that was not takes the share of its peak that the one of the nearest peak keeps up, as power is what
        limits both: int8 that of fp8. What the device has no peak for is multiplied as bf16.
        """
        if not isinstance(operator.shape, Matrix | ExpertMatrices):
            return None
        accelerator = self.roofline.accelerator
        rates, peaks = accelerator.sustained_flops_per_s, accelerator.peak_flops_per_s
        dtype = weight_format(operator.shape.weights).compute_dtype
        if not rates or dtype in rates or dtype not in peaks:
            return rates.get(dtype, rates.get("bf16"))
        nearest = min(rates, key=lambda name: abs(peaks[name] - peaks[dtype]))
        return rates[nearest] / peaks[nearest] * peaks[dtype]

    def collective(self, operation: str, ranks: int, topology: str | None = None) -> Price:
        """The price of a collective of ``ranks`` over bytes, over links of a ``topology``: those of neighbours if None.

        Tables were measured within one node; what they lack takes the constants of its kind of link, unless the
        scenario asks for the roofline.
        """
        fabric = self.links
        topology = topology or fabric.topology(ranks)
        measured = self.profile_of("collective")
        if measured is not None and topology == measured_topology(self.roofline.accelerator):
            found = measured.collectives_of(operation, ranks)
            if found:
                return Fastest(found)
        link_bytes_per_s = fabric.bytes_per_s(topology)
        if self.fitted_collectives and ranks > 1:  # of one nothing is collected, and reading the constants takes long
            return AlphaBetaPrice(alpha_beta_constants()[topology, operation], ranks, link_bytes_per_s)
        return RooflineCollective(self.roofline, link_share(operation, ranks), link_bytes_per_s)

    def attention(self, work: AttentionWork) -> AttentionPrices:
        """Calibrated prices of attention, None each where the roofline must do."""
        shape, profile = work.shape, self.profile
        if profile is None or shape is None or shape.kv_dtype not in _KV_DTYPES:
            return AttentionPrices(None, None, None)
        if shape.latent:
            if shape.head_dim != MLA_HEAD_DIM or work.window_tokens is not None:
                return AttentionPrices(None, None, None)
            latent = _KV_DTYPES[shape.kv_dtype], shape.heads
            prompts, decodes = (self.fallback_profiles.get(kind, profile) for kind in ("mla_context", "mla_generation"))
            found = AttentionPrices(prompts.mla_context(*latent), decodes.mla_generation(*latent), None)
        else:
            asked = _asked(shape, work.window_tokens)
            found = AttentionPrices(
                profile.context_attention(*asked),
                profile.generation_attention(*asked),
                profile.mixed_generation(*asked),
            )
        return found.no_faster_than(work.kv_bytes_per_token / self.roofline.accelerator.memory_bandwidth_bytes_per_s)

    def linear_attention(self, work: LinearAttentionWork) -> LinearAttentionPrice | None:
        """The calibrated price of linear attention, None where the roofline must do.

        Decodes move states no faster than memory is: measured again and again, those of one layer lay in a cache that
        is too small for those of all layers, and for the weights between them.
        """
        profile = self.profile_of("linear_attention")
        shape = work.key_heads, work.value_heads, work.key_head_dim, work.value_head_dim
        found = None if profile is None or not work.delta_rule else profile.linear_attention(*shape)
        least_s = work.state_traffic_bytes / self.roofline.accelerator.memory_bandwidth_bytes_per_s
        return None if found is None else replace(found, least_s_per_request=least_s)

    def _calibrated(self, operator: Operator) -> Price | None:
        shape, profile = operator.shape, self.profile
        if profile is None:
            return None
        if shape is None:
            return self._elementwise(operator, self.fallback_profiles.get("elementwise", profile))
        dtype = table_dtype(shape.weights)
        if dtype is None:
            return None
        if isinstance(shape, Matrix):
            return self._gemm(profile, dtype, shape)
        if isinstance(shape, QuantisedInputs):
            small = self._small_gemms(profile, dtype)
            return small and QuantisationPrice(RooflinePrice(self.roofline, operator), *small, operator.launches)
        assert isinstance(shape, ExpertMatrices)
        return self._experts(self.fallback_profiles.get("moe", profile), dtype, shape, operator)

    def _gemm(self, profile: KernelProfile, dtype: str, shape: Matrix) -> Price | None:
        """A GEMM of inputs that are in its format: quantising them, which engines' modules do first, is no part of it.

        Measured modules quantise what they are given in 16 bits. By how much a small one is slower than in 16 bits is
        taken off all.
        """
        found = profile.gemm(dtype, shape.outputs, shape.inputs)
        if found is None or not weight_format(shape.weights).quantises_activations:
            return found
        small = self._small_gemms(profile, dtype)
        return found if small is None else QuantisedInputPrice(found, *small)

    def _small_gemms(self, profile: KernelProfile, dtype: str) -> tuple[Price, Price] | None:
        """A GEMM that takes next to nothing beside what its module does before, and the same in 16 bits."""
        small, plain = (profile.gemm(name, NARROWEST, NARROWEST) for name in (dtype, "bf16"))
        return None if small is None or plain is None else (small, plain)

    def _elementwise(self, operator: Operator, profile: KernelProfile) -> Price | None:
        """An operator that stands for several launches has them priced one by one, with an even share of its bytes."""
        measured = MEASURED_AS.get(operator.name)
        if measured is None or profile.elementwise is None or operator.within:
            return None
        width = operator.activation_bytes_per_token / operator.launches
        launch = profile.elementwise.price(measured, width)
        if launch is None:
            return None
        return ElementwisePrice(launch, operator.launches, width, self.roofline.memory_s(1.0))

    def _experts(self, profile: KernelProfile, dtype: str, shape: ExpertMatrices, operator: Operator) -> Price | None:
        hidden, intermediate = shape.hidden, shape.intermediate
        names, kernels = expert_dtypes(dtype), self.expert_kernels
        known = [name.removeprefix(f"{dtype}-") for name in profile.expert_dtypes if name.startswith(f"{dtype}-")]
        if kernels == AUTO and known and not set(names) & set(profile.expert_dtypes):
            kernels = known[0]  # the engine has no others on this accelerator
        if kernels != AUTO:
            names = (f"{dtype}-{kernels}",)
            if kernels not in known:
                raise UnknownNameError("pricing.expert_kernels", kernels, (AUTO, *known))
            padding = self.engine.expert_padding.get(kernels, Padding())
            hidden = -(-hidden // padding.hidden) * padding.hidden
            intermediate = -(-intermediate // (shape.ranks * padding.width)) * padding.width * shape.ranks
        found = [
            profile.moe(
                name,
                hidden,
                intermediate,
                operator.experts_per_token,
                operator.experts,
                tensor_parallel=shape.ranks,
                expert_parallel=shape.expert_ranks,
                distribution=self.routing,
            )
            for name in names
        ]
        prices = tuple(price for price in found if price is not None)
        if not prices:
            return None
        return Fastest(prices) if shape.load == 1.0 else ImbalancedExpertPrice(Fastest(prices), shape.load)


def _asked(shape: AttentionShape, window_tokens: int | None) -> tuple[str, int, int, int, int]:
    return _KV_DTYPES[shape.kv_dtype], shape.heads, shape.kv_heads, shape.head_dim, window_tokens or 0
