"""The normal distribution. SciPy is slow to import, so only workloads that draw from it do so."""

from typing import Any


def normal_cdf(x: Any) -> Any:
    """The share of a standard normal distribution below ``x``, a number or an array."""
    from scipy.special import ndtr

    return ndtr(x)


def normal_quantile(share: Any) -> Any:
    """Below which so large a share of a standard normal distribution lies, for a number or an array."""
    from scipy.special import ndtri

    return ndtri(share)
