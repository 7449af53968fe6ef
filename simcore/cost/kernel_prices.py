"""Which price a kernel takes: the calibrated one where the profile has its shape and dtype, else the roofline's."""

from dataclasses import dataclass
from typing import Protocol

from simcore.cost.calibrated import ContextPrice, CurvePrice, GenerationPrice, KernelProfile, Source
from simcore.cost.operators import AttentionShape, AttentionWork, ExpertMatrices, Matrix, Operator
from simcore.cost.roofline import Roofline

_TABLE_DTYPES = {
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "fp8-channel": "fp8",
    "fp8-block": "fp8-block",
    "nvfp4": "nvfp4",
}
"""The dtype of a profile's tables that stands for a weight format; others are priced by roofline."""
_KV_DTYPES = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8"}
_ALL_REDUCES = ("nccl", "custom_graph")


class Price(Protocol):
    """Seconds of a kernel over tokens or bytes, and how far they may be trusted."""

    @property
    def source(self) -> Source:
        """Where the price comes from."""

    def seconds(self, x: int) -> float:
        """One kernel at ``x`` tokens, or bytes for a collective."""

    def inside(self, x: int) -> bool:
        """Whether that lies in the calibrated range; never by roofline."""


@dataclass(frozen=True, slots=True)
class RooflinePrice:
    """An operator by roofline."""

    roofline: Roofline
    operator: Operator
    source: Source = Source.ROOFLINE

    def seconds(self, x: int) -> float:
        """One kernel over ``x`` tokens."""
        return self.roofline.operator_s(self.operator, x)

    def inside(self, x: int) -> bool:
        """Nothing is calibrated."""
        return False


@dataclass(frozen=True, slots=True)
class RooflineAllReduce:
    """An all-reduce by roofline."""

    roofline: Roofline
    ranks: int
    source: Source = Source.ROOFLINE

    def seconds(self, x: int) -> float:
        """One all-reduce of ``x`` bytes."""
        return self.roofline.all_reduce_s(x, self.ranks)

    def inside(self, x: int) -> bool:
        """Nothing is calibrated."""
        return False


@dataclass(frozen=True, slots=True)
class FastestAllReduce:
    """The fastest measured implementation at each size, which is what engines choose by size for."""

    prices: tuple[CurvePrice, ...]
    source: Source = Source.CALIBRATED

    def seconds(self, x: int) -> float:
        """One all-reduce of ``x`` bytes."""
        return min(price.seconds(x) for price in self.prices)

    def inside(self, x: int) -> bool:
        """Whether the fastest was measured there."""
        return min(self.prices, key=lambda price: price.seconds(x)).inside(x)


@dataclass(frozen=True, slots=True)
class AttentionPrices:
    """Calibrated attention of layers alike; ``mixed`` prices decodes beside a chunk, where such were measured."""

    context: ContextPrice | None
    generation: GenerationPrice | None
    mixed: GenerationPrice | None


@dataclass(frozen=True, slots=True)
class KernelPrices:
    """Prices of the kernels of one accelerator: by ``profile`` as far as it goes, by ``roofline`` beyond."""

    roofline: Roofline
    profile: KernelProfile | None = None

    def operator(self, operator: Operator) -> Price:
        """The price of an operator over tokens."""
        return self._calibrated(operator) or RooflinePrice(self.roofline, operator)

    def all_reduce(self, ranks: int) -> Price:
        """The price of an all-reduce over bytes; across nodes by roofline, since all was measured within one."""
        accelerator = self.roofline.accelerator
        within = accelerator.interconnect_bytes_per_s is None or ranks <= accelerator.interconnect_domain
        if self.profile is not None and within:
            found = [self.profile.collective("all_reduce", name, ranks) for name in _ALL_REDUCES]
            prices = tuple(price for price in found if price is not None)
            if prices:
                return FastestAllReduce(prices)
        return RooflineAllReduce(self.roofline, ranks)

    def attention(self, work: AttentionWork) -> AttentionPrices:
        """Calibrated prices of attention, None each where the roofline must do."""
        shape, profile = work.shape, self.profile
        if profile is None or shape is None or shape.kv_dtype not in _KV_DTYPES:
            return AttentionPrices(None, None, None)
        asked = _asked(shape, work.window_tokens)
        return AttentionPrices(
            profile.context_attention(*asked), profile.generation_attention(*asked), profile.mixed_generation(*asked)
        )

    def _calibrated(self, operator: Operator) -> Price | None:
        shape, profile = operator.shape, self.profile
        if profile is None or shape is None or shape.weights not in _TABLE_DTYPES:
            return None
        dtype = _TABLE_DTYPES[shape.weights]
        if isinstance(shape, Matrix):
            return profile.gemm(dtype, shape.outputs, shape.inputs)
        assert isinstance(shape, ExpertMatrices)
        return profile.moe(
            dtype,
            shape.hidden,
            shape.intermediate,
            operator.experts_per_token,
            operator.experts,
            tensor_parallel=shape.ranks,
        )


def _asked(shape: AttentionShape, window_tokens: int | None) -> tuple[str, int, int, int, int]:
    return _KV_DTYPES[shape.kv_dtype], shape.heads, shape.kv_heads, shape.head_dim, window_tokens or 0
