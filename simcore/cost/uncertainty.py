"""What a run might have been priced at instead: prices drawn from the errors that are known or assumed of them.

A draw is one uniform level for each of ``KINDS``. All kernels of a kind are off together, since most of what a fit or a
constant gets wrong, it gets wrong everywhere: errors drawn kernel by kernel would average out and promise too much.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import exp, log

import numpy as np
from scipy.special import ndtri

from simcore.cost.assumptions import (
    HOST_SPREAD,
    ROOFLINE_ATTENTION_ERRORS,
    ROOFLINE_COLLECTIVE_ERRORS,
    ROOFLINE_MATMUL_ERRORS,
    ROUTING,
    ROUTINGS,
    STEP_ERROR,
    HostOverhead,
    RooflineEfficiency,
)
from simcore.cost.attention import AttentionWork
from simcore.cost.calibrated import ContextPrice, GenerationPrice, KernelProfile, LinearAttentionPrice, Source
from simcore.cost.calibrated.errors import LEVELS, ErrorQuantiles
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.linear_attention import LinearAttentionWork
from simcore.cost.operators import Matrix, Operator
from simcore.cost.prices import AttentionPrices, ElementwisePrice, Price

KINDS = (
    "gemm",
    "experts",
    "all_reduce",
    "prefill_attention",
    "decode_attention",
    "roofline_matmul",
    "roofline_attention",
    "roofline_collective",
    "host_step",
    "host_request",
    "routing",
    "step",
    "elementwise",
)
"""What is off independently of the others: kinds of calibrated kernels, of roofline prices and of host constants, how
tokens spread over experts, and whole steps."""

Draw = Mapping[str, float]
"""A level in (0, 1) for each of ``KINDS``."""

_DEVIATES = ndtri(LEVELS)
_HOST_DEVIATE = float(ndtri(0.9))
_STEP_CONSTANTS = ("step_s", "per_request_s", "launch_s", "layer_s", "linear_prompt_s")
_REQUEST_CONSTANTS = ("request_s", "per_prompt_token_s")


def draws(count: int, seed: int) -> list[Draw]:
    """So many draws, the same for the same seed; each kind's levels are spread evenly over (0, 1).

    A Latin hypercube (McKay, Beckman & Conover, Technometrics 1979), so that few draws will do.
    """
    generator = np.random.default_rng(seed)
    levels = {kind: (generator.permutation(count) + generator.random(count)) / count for kind in KINDS}
    return [{kind: float(levels[kind][index]) for kind in KINDS} for index in range(count)]


@lru_cache(maxsize=1024)
def price_factor(quantiles: tuple[float, ...], level: float) -> float:
    """By what a price is to be multiplied to undo the error at ``level``.

    ``quantiles`` are of log(price / measurement) at ``LEVELS``. Between them, and beyond at the slope of the outermost
    two, the error is linear in the normal deviate of the level.
    """
    deviate = float(ndtri(level))
    low = int(np.clip(np.searchsorted(_DEVIATES, deviate) - 1, 0, len(LEVELS) - 2))
    slope = (quantiles[low + 1] - quantiles[low]) / (_DEVIATES[low + 1] - _DEVIATES[low])
    return exp(-(quantiles[low] + slope * (deviate - _DEVIATES[low])))


def step_factor(draw: Draw) -> float:
    """By what everything in a step is to be multiplied beside."""
    return exp(STEP_ERROR * float(ndtri(draw["step"])))


def drawn_routing(profile: KernelProfile | None, draw: Draw) -> str:
    """One of ``ROUTINGS`` that the profile has, or what is assumed where it has none."""
    table = None if profile is None else profile.experts
    measured = {distribution for _, distribution in table.measured} if table is not None else set()
    known = [routing for routing in ROUTINGS if routing in measured]
    return known[int(draw["routing"] * len(known))] if known else ROUTING


def drawn_host(host: HostOverhead, draw: Draw) -> HostOverhead:
    """Host constants that may be the true ones: those of a step together, and those of a request."""
    of_step = _host_factor(draw["host_step"]) * step_factor(draw)
    changed = {name: getattr(host, name) * of_step for name in _STEP_CONSTANTS}
    changed |= {name: getattr(host, name) * _host_factor(draw["host_request"]) for name in _REQUEST_CONSTANTS}
    return replace(host, **changed)


def drawn_efficiency(efficiency: RooflineEfficiency, draw: Draw) -> RooflineEfficiency:
    """Roofline constants that may be the true ones for the kernels of a run; shares may come out above 1."""
    factors = {
        "matmul": price_factor(ROOFLINE_MATMUL_ERRORS, draw["roofline_matmul"]),
        "widened": price_factor(ROOFLINE_MATMUL_ERRORS, draw["roofline_matmul"]),
        "attention": price_factor(ROOFLINE_ATTENTION_ERRORS, draw["roofline_attention"]),
        "kernel": price_factor(ROOFLINE_MATMUL_ERRORS, draw["roofline_matmul"]),
        "interconnect": price_factor(ROOFLINE_COLLECTIVE_ERRORS, draw["roofline_collective"]),
        "collective": price_factor(ROOFLINE_COLLECTIVE_ERRORS, draw["roofline_collective"]),
    }
    changed = {}
    for constant in fields(efficiency):
        value = getattr(efficiency, constant.name)
        factor = factors[constant.name.partition("_")[0]] * step_factor(draw)
        changed[constant.name] = value * factor if constant.name.endswith("_s") else value / factor
    return replace(efficiency, **changed)


@dataclass(frozen=True, slots=True)
class DrawnPrice:
    """A price with calibrated kernels off by what ``level`` says, and by ``factor``; by roofline it stays as it is."""

    price: Price
    level: float
    factor: float

    @property
    def source(self) -> Source:
        """That of the price."""
        return self.price.source

    def seconds(self, x: int) -> float:
        """One kernel at ``x`` tokens, or bytes for a collective."""
        errors = self.price.errors_at(x)
        seconds = self.price.seconds(x)
        return seconds if errors is None else seconds * price_factor(errors.quantiles, self.level) * self.factor

    def inside(self, x: int) -> bool:
        """Whether that lies in the calibrated range."""
        return self.price.inside(x)

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the price."""
        return self.price.errors_at(x)


@dataclass(frozen=True, slots=True)
class DrawnPrices(KernelPrices):
    """Kernel prices that may be the true ones; ``roofline`` is to have drawn efficiencies."""

    draw: Draw = field(default_factory=dict)

    @classmethod
    def of(cls, prices: KernelPrices, draw: Draw) -> "DrawnPrices":
        """A draw of those prices."""
        efficiency = drawn_efficiency(prices.roofline.efficiency, draw)
        drawn = {
            "roofline": replace(prices.roofline, efficiency=efficiency),
            "routing": drawn_routing(prices.profile_of("moe"), draw) if prices.routing == ROUTING else prices.routing,
            "draw": draw,
        }
        return cls(**{own.name: getattr(prices, own.name) for own in fields(prices)} | drawn)

    def operator(self, operator: Operator) -> Price:
        """The price of an operator over tokens."""
        kind = "experts"
        if operator.shape is None:
            kind = "elementwise"
        elif isinstance(operator.shape, Matrix):
            kind = "gemm"
        price, factor = KernelPrices.operator(self, operator), step_factor(self.draw)
        if isinstance(price, ElementwisePrice):  # beyond the measured bytes by the roofline, which has the factor
            price = replace(price, s_per_byte=price.s_per_byte / factor)
        return DrawnPrice(price, self.draw[kind], factor)

    def collective(self, operation: str, ranks: int, topology: str | None = None) -> Price:
        """The price of a collective over bytes."""
        price = KernelPrices.collective(self, operation, ranks, topology)
        return DrawnPrice(price, self.draw["all_reduce"], step_factor(self.draw))

    def attention(self, work: AttentionWork) -> AttentionPrices:
        """Calibrated prices of attention."""
        found, beside = KernelPrices.attention(self, work), step_factor(self.draw)
        prefill, decode = self.draw["prefill_attention"], self.draw["decode_attention"]
        return AttentionPrices(
            None if found.context is None else _drawn_context(found.context, prefill, beside),
            None if found.generation is None else _drawn_generation(found.generation, decode, beside),
            None if found.mixed is None else _drawn_generation(found.mixed, decode, beside),
        )

    def linear_attention(self, work: LinearAttentionWork) -> LinearAttentionPrice | None:
        """The calibrated price of linear attention."""
        found = KernelPrices.linear_attention(self, work)
        return None if found is None else _drawn_linear(found, self.draw)


def _drawn_linear(price: LinearAttentionPrice, draw: Draw) -> LinearAttentionPrice:
    beside = step_factor(draw)
    levels = (draw["prefill_attention"], draw["decode_attention"])
    return price.scaled(*(price_factor(price.errors.quantiles, level) * beside for level in levels))


def _drawn_context(price: ContextPrice, level: float, beside: float) -> ContextPrice:
    factor = price_factor(price.errors.quantiles, level) * beside
    return replace(
        price, curves=tuple(curve.scaled(factor) for curve in price.curves), sweep=price.sweep.scaled(factor)
    )


def _drawn_generation(price: GenerationPrice, level: float, beside: float) -> GenerationPrice:
    factor = price_factor(price.errors.quantiles, level) * beside
    return replace(price, log_ratio=price.log_ratio + log(factor), _curves={})


def _host_factor(level: float) -> float:
    """Log-normal: 1 in ten is above ``HOST_SPREAD``, and 1 in ten below its inverse."""
    return float(HOST_SPREAD ** (float(ndtri(level)) / _HOST_DEVIATE))
