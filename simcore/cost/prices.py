"""Prices of kernels, and what is made of them: the fastest of several, one of a loaded rank, one of a loaded device."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

from simcore.cost.calibrated import ContextPrice, CurvePrice, GenerationPrice, Source
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.operators import Operator
from simcore.cost.roofline import Roofline


class Price(Protocol):
    """Seconds of a kernel over tokens or bytes, and how far they may be trusted."""

    @property
    def source(self) -> Source:
        """Where the price comes from."""

    def seconds(self, x: int) -> float:
        """One kernel at ``x`` tokens, or bytes for a collective."""

    def inside(self, x: int) -> bool:
        """Whether that lies in the calibrated range; never by roofline."""

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """The held-out errors of the fit that prices ``x``; None by roofline."""


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

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """There is no fit."""
        return None


@dataclass(frozen=True, slots=True)
class RooflineCollective:
    """A collective by roofline: ``share`` of its buffer crosses links of that rate."""

    roofline: Roofline
    share: float
    link_bytes_per_s: float
    source: Source = Source.ROOFLINE

    def seconds(self, x: int) -> float:
        """One collective of ``x`` bytes."""
        return self.roofline.crossing_s(self.share * x, self.link_bytes_per_s)

    def inside(self, x: int) -> bool:
        """Nothing is calibrated."""
        return False

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """There is no fit."""
        return None


@dataclass(frozen=True, slots=True)
class MessagePrice:
    """A message between ranks over tokens: a ``price`` over bytes, of which each token adds so many."""

    price: Price
    bytes_per_token: float

    def sent_bytes(self, tokens: int) -> int:
        """The bytes of so many tokens, a broken one whole."""
        return ceil(tokens * self.bytes_per_token)

    @property
    def source(self) -> Source:
        """That of the price over bytes."""
        return self.price.source

    def seconds(self, x: int) -> float:
        """One message of ``x`` tokens."""
        return self.price.seconds(self.sent_bytes(x))

    def inside(self, x: int) -> bool:
        """Whether so many bytes were measured."""
        return self.price.inside(self.sent_bytes(x))

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the price over bytes."""
        return self.price.errors_at(self.sent_bytes(x))


@dataclass(frozen=True, slots=True)
class SustainedPrice:
    """A measured GEMM, but no faster than ``per_token_s`` allows at the clock of a device that stays loaded.

    Measurements of single kernels last too short for the power limit to lower the clock.
    """

    price: Price
    per_token_s: float

    @property
    def source(self) -> Source:
        """That of the measurement."""
        return self.price.source

    def seconds(self, x: int) -> float:
        """One kernel over ``x`` tokens."""
        return max(self.price.seconds(x), x * self.per_token_s)

    def inside(self, x: int) -> bool:
        """Whether that was measured."""
        return self.price.inside(x)

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the measurement's fit."""
        return self.price.errors_at(x)


@dataclass(frozen=True, slots=True)
class PriceBeside:
    """A kernel that runs beside others in steps of up to ``most_tokens``, and then takes their bandwidth alone."""

    price: Price
    bandwidth: Price
    most_tokens: int

    @property
    def source(self) -> Source:
        """That of the kernel."""
        return self.price.source

    def seconds(self, x: int) -> float:
        """One kernel over ``x`` tokens."""
        return (self.bandwidth if x <= self.most_tokens else self.price).seconds(x)

    def inside(self, x: int) -> bool:
        """Whether the kernel was measured there."""
        return self.price.inside(x)

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the kernel."""
        return self.price.errors_at(x)


@dataclass(frozen=True, slots=True)
class ElementwisePrice:
    """An elementwise operator of ``launches`` measured kernels, each of which moves ``bytes_per_token``.

    Bytes beyond the measured ones take ``s_per_byte``: they no longer fit the cache that may have held those.
    """

    launch: CurvePrice
    launches: int
    bytes_per_token: float
    s_per_byte: float

    @property
    def source(self) -> Source:
        """That of the measurement."""
        return self.launch.source

    def seconds(self, x: int) -> float:
        """The operator over ``x`` tokens; nothing is launched for none."""
        if x == 0:
            return 0.0
        moved, last = x * self.bytes_per_token, self.launch.curve.last
        return self.launches * (self.launch.seconds(min(moved, last)) + max(moved - last, 0.0) * self.s_per_byte)

    def inside(self, x: int) -> bool:
        """Whether so many bytes were measured of this width."""
        return self.launch.inside(x * self.bytes_per_token)

    def errors_at(self, x: int) -> ErrorQuantiles:
        """Those of the measurement's fit."""
        return self.launch.errors


@dataclass(frozen=True, slots=True)
class Fastest:
    """The fastest of the measured implementations at each size, which is what engines choose by size for."""

    prices: tuple[CurvePrice, ...]
    source: Source = Source.CALIBRATED

    def seconds(self, x: int) -> float:
        """One kernel at ``x`` tokens or bytes."""
        return min(price.seconds(x) for price in self.prices)

    def inside(self, x: int) -> bool:
        """Whether the fastest was measured there."""
        return self._at(x).inside(x)

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the fastest there."""
        return self._at(x).errors

    def _at(self, x: int) -> CurvePrice:
        return min(self.prices, key=lambda price: price.seconds(x))


@dataclass(frozen=True, slots=True)
class ImbalancedExpertPrice:
    """A measured price of evenly loaded experts, on a rank that gets ``load`` times its even share of tokens."""

    price: Price
    load: float

    @property
    def source(self) -> Source:
        """That of the measurement."""
        return self.price.source

    def seconds(self, x: int) -> float:
        """One kernel over ``x`` tokens of all ranks."""
        return self.price.seconds(ceil(x * self.load))

    def inside(self, x: int) -> bool:
        """Whether so many tokens were measured."""
        return self.price.inside(ceil(x * self.load))

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the measurement's fit."""
        return self.price.errors_at(ceil(x * self.load))


@dataclass(frozen=True, slots=True)
class AttentionPrices:
    """Calibrated attention of layers alike; ``mixed`` prices decodes beside a chunk, where such were measured."""

    context: ContextPrice | None
    generation: GenerationPrice | None
    mixed: GenerationPrice | None

    def over_ranks(self, data_ranks: int, spread: int) -> "AttentionPrices":
        """The same for requests dealt out to so many ``data_ranks``, the context of each divided among ``spread``."""
        if data_ranks * spread == 1:
            return self
        return self._with_decodes(lambda price: replace(price, data_ranks=data_ranks, spread=spread, _curves={}))

    def no_faster_than(self, s_per_token: float) -> "AttentionPrices":
        """The same, but that decodes take so long at least for each token beyond the measured contexts.

        What extrapolates a batch of short contexts would else come to read faster than memory is.
        """
        return self._with_decodes(lambda price: replace(price, least_s_per_token=s_per_token, _curves={}))

    def _with_decodes(self, changed: Callable[[GenerationPrice], GenerationPrice]) -> "AttentionPrices":
        generation, mixed = (None if price is None else changed(price) for price in (self.generation, self.mixed))
        return AttentionPrices(self.context, generation, mixed)
