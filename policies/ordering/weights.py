"""Weights of tenants."""

from collections.abc import Mapping

from policies.bounds import MOST_WEIGHT, check_value


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ``ValueError`` unless every tenant's weight is a number that makes a difference one can count with."""
    for tenant, weight in weights.items():
        check_value(f"weights.{tenant}", weight, 1 / MOST_WEIGHT, MOST_WEIGHT)
