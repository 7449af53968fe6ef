"""Weights of tenants."""

from collections.abc import Mapping


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ``ValueError`` unless every tenant's weight is greater than 0."""
    for tenant, weight in weights.items():
        if weight <= 0:
            raise ValueError(f"weights.{tenant} is {weight}, expected a number greater than 0")
