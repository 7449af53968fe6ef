"""Weights of tenants."""

from collections.abc import Mapping

_LEAST, _MOST = 1e-6, 1e6


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ``ValueError`` unless every tenant's weight is a number that makes a difference one can count with."""
    for tenant, weight in weights.items():
        if not _LEAST <= weight <= _MOST:
            raise ValueError(f"weights.{tenant} is {weight}, expected a number from {_LEAST:g} to {_MOST:g}")
