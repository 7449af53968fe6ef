"""Two constants for what the host adds to a step: whatever it does, and for each of its requests."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from simcore.cost.calibrated.document import MeasuredHost

_ROUNDS = 5
_FAR = 0.2
"""A relative error beyond which a step counts less: something else ran."""


def fit_host(requests: NDArray[np.float64], seconds: NDArray[np.float64]) -> MeasuredHost:
    """Both from steps, relative errors counting, neither below 0 (Lawson and Hanson, 1974)."""
    design = np.column_stack([np.ones(len(requests)), requests]) / seconds[:, None]
    trust = np.ones(len(requests))
    found = np.zeros(2)
    for _ in range(_ROUNDS):
        found, _ = nnls(design * trust[:, None], trust)
        error = np.abs(design @ found - 1.0)
        trust = np.sqrt(np.minimum(1.0, _FAR / np.maximum(error, 1e-12)))
    median = float(np.median(np.abs(design @ found - 1.0)))
    return MeasuredHost(
        step_s=float(f"{found[0]:.4g}"),
        per_request_s=float(f"{found[1]:.4g}"),
        steps=len(requests),
        median_error=round(median, 4),
    )
