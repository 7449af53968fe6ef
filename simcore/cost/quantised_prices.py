"""GEMMs whose modules quantise their input: what is left of a measured one without that, and what that takes."""

from dataclasses import dataclass

from simcore.cost.calibrated import Source
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.prices import Price


@dataclass(frozen=True, slots=True)
class QuantisedInputPrice:
    """A measured GEMM without the quantisation of its input, which a ``small`` one shows.

    ``plain`` is the same small GEMM in 16 bits. No GEMM takes less than it.
    """

    price: Price
    small: Price
    plain: Price

    @property
    def source(self) -> Source:
        """That of the measurement."""
        return self.price.source

    def seconds(self, x: int) -> float:
        """One kernel over ``x`` tokens."""
        measured, plain_s = self.price.seconds(x), self.plain.seconds(x)
        quantising_s = max(self.small.seconds(x) - plain_s, 0.0)
        return max(measured - quantising_s, min(measured, plain_s))

    def inside(self, x: int) -> bool:
        """Whether that was measured."""
        return self.price.inside(x)

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the measurement's fit."""
        return self.price.errors_at(x)


@dataclass(frozen=True, slots=True)
class QuantisationPrice:
    """Kernels that quantise, ``launches`` of them: each takes what a ``small`` GEMM takes beyond a ``plain`` one.

    Where memory is what they wait for they take the roofline's price.
    """

    roofline: Price
    small: Price
    plain: Price
    launches: int

    @property
    def source(self) -> Source:
        """That of the measurement."""
        return self.small.source

    def seconds(self, x: int) -> float:
        """All of them over ``x`` tokens."""
        if x == 0:
            return 0.0
        least_s = max(self.small.seconds(x) - self.plain.seconds(x), 0.0)
        return max(self.roofline.seconds(x), self.launches * least_s)

    def inside(self, x: int) -> bool:
        """Whether that was measured."""
        return self.small.inside(x)

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the measurement's fit."""
        return self.small.errors_at(x)
