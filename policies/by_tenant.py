"""Limits that are one for all, or differ by tenant."""

from collections.abc import Mapping

Amount = float | Mapping[str, float]
Count = int | Mapping[str, int]


def amount_of(limit: Amount, tenant: str, otherwise: float) -> float:
    """The limit of a tenant; where limits are by tenant, ``otherwise`` is that of all who are not named."""
    return limit.get(tenant, otherwise) if isinstance(limit, Mapping) else limit


def differ(*limits: Amount) -> bool:
    """Whether one of the limits is by tenant, so that each tenant is counted apart."""
    return any(isinstance(limit, Mapping) for limit in limits)
